package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

class TrialTimesTest {
    private static final Instant BEGAN = Instant.parse("2026-11-23T14:00:00Z");

    private static final Plan.Boot BOOT = Plan.of(TinyRun.study(List.of("rpcx"), 2, Duration.ofSeconds(1)))
            .boots()
            .getFirst();

    private static final TrialSpec TRIAL = BOOT.trials().getFirst();

    private static TrialRow took(Duration length, TrialRow.State state) {
        return new TrialRow(TRIAL, state, BEGAN, BEGAN.plus(length), List.of(), "");
    }

    /** A sitting may not begin what the restart before has shown to end after it. */
    @Test
    void aTrialTakesAsLongAsTheSameTookInAnotherRestart() {
        TrialTimes times = new TrialTimes(List.of(took(Duration.ofSeconds(70), TrialRow.State.FINISHED)));
        times.took(took(Duration.ofSeconds(90), TrialRow.State.FINISHED));
        times.took(took(Duration.ofSeconds(80), TrialRow.State.FINISHED));
        assertThat(times.of(TRIAL)).isEqualTo(new TimeRange(Duration.ofSeconds(70), Duration.ofSeconds(90)));
        assertThat(times.longest(TRIAL)).isEqualTo(Duration.ofSeconds(90));
        assertThat(times.longest(BOOT))
                .isEqualTo(Plan.estimate(BOOT)
                        .most()
                        .plusSeconds(90)
                        .minus(Plan.estimate(TRIAL).most()));
    }

    @Test
    void whatWasNeverSeenTakesAsLongAsItIsPlanned() {
        TrialTimes times = new TrialTimes(List.of(
                took(Duration.ofMinutes(9), TrialRow.State.FAILED),
                took(Duration.ofMillis(1), TrialRow.State.FINISHED)));
        assertThat(times.longest(TRIAL))
                .as("neither what failed nor what ended early tells")
                .isEqualTo(Plan.estimate(TRIAL).most());
        assertThat(times.of(other(TRIAL, new Load.Closed(31)))).isEqualTo(Plan.estimate(TRIAL));
        assertThat(new TrialTimes(List.of()).longest(BOOT))
                .isEqualTo(Plan.estimate(BOOT).most());
    }

    private static TrialSpec other(TrialSpec trial, Load load) {
        return new TrialSpec(
                trial.id(),
                trial.technology(),
                trial.topology(),
                trial.work(),
                trial.message(),
                load,
                trial.restart(),
                trial.block(),
                trial.window(),
                trial.limit());
    }
}
