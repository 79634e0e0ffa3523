package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.lab.Glance;
import dev.parley.lab.Plan;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Where there is no terminal; by a hand clock. */
class ProgressTest {
    private static final Instant BEGAN = Instant.parse("2026-11-23T14:00:00Z");

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private long nowNs;
    private final Progress progress =
            new Progress(new PrintStream(said, true, StandardCharsets.UTF_8), false, () -> nowNs);

    private static Plan plan(String... loads) {
        return Plan.of(new Study(
                "a test",
                List.of("rest", "grpc", "rpcx"),
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(MessageSpec.parse("types:100")),
                List.of(loads).stream().map(Load::parse).toList(),
                Effort.QUICK,
                2,
                Duration.ofSeconds(1),
                1,
                Limits.NONE));
    }

    private void ended(TrialSpec trial, int seconds) {
        progress.trialEnded(
                new TrialRow(trial, TrialRow.State.FINISHED, BEGAN, BEGAN.plusSeconds(seconds), List.<String>of(), ""),
                Optional.of(new Glance(2_000, 1, 2, 10_000, 0)));
    }

    private List<String> lines() {
        return said.toString(StandardCharsets.UTF_8).lines().toList();
    }

    @Test
    void aRunBeginsWithTheRangeOfWhatItMayTake() {
        progress.planned(plan("closed:1", "closed:16"));
        progress.planned(plan("burst:500:10"));
        progress.planned(new Plan(List.of()));
        assertThat(lines())
                .satisfiesExactly(
                        quick -> assertThat(quick).isEqualTo("12 trials in 6 boots of services, about 2 to 5 min"),
                        burst -> assertThat(burst)
                                .startsWith("6 trials in 6 boots of services, about ")
                                .endsWith(", and longer where a load goes on until its work is done"),
                        nothing -> assertThat(nothing).isEqualTo("every trial has ended already"));
    }

    /** It stood at half of what was to come, and grew while services started. */
    @Test
    void theTimeLeftFollowsWhatTrialsTakeAndGrowsWithANoteOnly() {
        Plan plan = plan("closed:1", "closed:16");
        Plan.Boot boot = plan.boots().getFirst();
        progress.planned(plan);
        progress.booting(boot, 0);
        nowNs = 30_000_000_000L;
        ended(boot.trials().getFirst(), 5);
        nowNs = 330_000_000_000L;
        ended(boot.trials().getLast(), 300);
        assertThat(lines())
                .satisfiesExactly(
                        begins -> assertThat(begins).endsWith(", about 2 to 5 min"),
                        starts -> assertThat(starts)
                                .isEqualTo("starting " + boot.technology() + " on line:2, restart 1; 2 to 5 min left"),
                        first -> assertThat(first).startsWith("trial 1 of 12: " + boot.technology() + " types:100 "),
                        second -> assertThat(second).startsWith("trial 2 of 12: "),
                        why -> assertThat(why)
                                .contains(" min left, more than before: " + boot.technology() + " types:100 ")
                                .endsWith(" took 5 min, expected: 5 s"));
    }

    /** A part of a paper whose failed trials are tried again has two plans, one after the other. */
    @Test
    void aSecondPlanIsCountedFromItsOwnBeginning() {
        Plan plan = plan("closed:1");
        progress.planned(plan);
        progress.booting(plan.boots().getFirst(), 0);
        ended(plan.trials().getFirst(), 5);
        progress.planned(plan);
        progress.booting(plan.boots().getFirst(), 0);
        ended(plan.trials().getFirst(), 5);
        assertThat(lines().getLast()).startsWith("trial 1 of 6: ");
    }
}
