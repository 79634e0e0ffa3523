package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Topology;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RehearsalTimeTest {
    private static Plan plan(Effort effort) {
        return Plan.of(new Study(
                "a test",
                List.of("rest", "grpc", "rpcx"),
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(MessageSpec.parse("text:1000")),
                List.of(new Load.Closed(1)),
                effort,
                3,
                Duration.ofSeconds(1),
                1,
                Limits.NONE));
    }

    private static final Effort OF_17_S = new Effort(
            "own", 3, Duration.ofSeconds(17), Duration.ofMillis(200), Duration.ofMillis(200), Duration.ofSeconds(2));

    /** What each boot gets where a technology takes as long as it needs, and no longer than it may. */
    private static List<Duration> taken(Plan plan, Map<String, Duration> needs) {
        RehearsalTime time = new RehearsalTime(plan);
        return plan.boots().stream()
                .map(boot -> {
                    Duration may = boot.rehearsing(time.next(boot)).rehearsal();
                    Duration needed = needs.getOrDefault(boot.technology(), Duration.ZERO);
                    Duration took = needed.compareTo(may) < 0 ? needed : may;
                    time.took(took);
                    return took;
                })
                .toList();
    }

    @Test
    void whatTheQuickLeaveIsThereForTheSlow() {
        Map<String, Duration> needs =
                Map.of("rest", Duration.ofSeconds(22), "grpc", Duration.ofSeconds(14), "rpcx", Duration.ofSeconds(7));
        assertThat(taken(plan(OF_17_S), needs))
                .as("each technology in each restart, though 22 s are more than the 17 s of one boot")
                .containsExactlyInAnyOrder(
                        Duration.ofSeconds(22),
                        Duration.ofSeconds(22),
                        Duration.ofSeconds(22),
                        Duration.ofSeconds(14),
                        Duration.ofSeconds(14),
                        Duration.ofSeconds(14),
                        Duration.ofSeconds(7),
                        Duration.ofSeconds(7),
                        Duration.ofSeconds(7));
    }

    @Test
    void allTogetherTakeTheirSharesAndNoneTakesAnothersLast() {
        List<Duration> taken = taken(
                plan(OF_17_S),
                Map.of("rest", Duration.ofHours(1), "grpc", Duration.ofHours(1), "rpcx", Duration.ofHours(1)));
        Duration sum = taken.stream().reduce(Duration.ZERO, Duration::plus);
        assertThat(sum).isBetween(Duration.ofMillis(9 * 17_000 - 1), Duration.ofSeconds(9 * 17));
        assertThat(taken)
                .allSatisfy(one -> assertThat(one).isGreaterThanOrEqualTo(Duration.ofNanos(17_000_000_000L * 2 / 3)));
    }

    @Test
    void whoeverAsksForNoneGetsNoneAndALeastIsKept() {
        Effort none = new Effort("own", 3, Duration.ZERO, Duration.ZERO, Duration.ZERO, Duration.ofSeconds(1));
        assertThat(taken(plan(none), Map.of("rest", Duration.ofHours(1)))).containsOnly(Duration.ZERO);
        Effort proof = new Effort(
                "own",
                3,
                Duration.ofMinutes(10),
                Duration.ofMinutes(12),
                Duration.ZERO,
                Duration.ZERO,
                Duration.ofSeconds(1));
        Duration hour = Duration.ofHours(1);
        assertThat(taken(plan(proof), Map.of("rest", hour, "grpc", hour, "rpcx", hour)))
                .allSatisfy(one -> assertThat(one).isGreaterThanOrEqualTo(Duration.ofMinutes(10)));
    }

    /** Nine boots of 18 s each: 162 s, of which one takes two ninths at the most, and each has 12 s at the least. */
    @Test
    void aBootTakesTwiceItsEvenPartAtTheMostAndLeavesTwoThirdsOfTheirSharesToThoseAfterIt() {
        Plan plan = plan(new Effort(
                "own",
                3,
                Duration.ofSeconds(18),
                Duration.ofMillis(200),
                Duration.ofMillis(200),
                Duration.ofSeconds(2)));
        Plan.Boot boot = plan.boots().getFirst();
        assertThat(plan.boots()).hasSize(9);
        RehearsalTime time = new RehearsalTime(plan);
        assertThat(time.next(boot)).isEqualTo(Duration.ofSeconds(36));
        time.took(Duration.ofSeconds(34));
        assertThat(time.next(boot)).as("two eighths of 128 s").isEqualTo(Duration.ofSeconds(32));
        for (int i = 0; i < 6; i++) {
            time.took(Duration.ofSeconds(10));
        }
        assertThat(time.next(boot)).as("two boots have 68 s").isEqualTo(Duration.ofSeconds(56));
        time.took(Duration.ofSeconds(56));
        assertThat(time.next(boot)).as("the last has all that is left").isEqualTo(Duration.ofSeconds(12));
        RehearsalTime scarce = new RehearsalTime(plan);
        scarce.took(Duration.ofSeconds(150));
        assertThat(scarce.next(boot)).as("a failed boot took others' time").isEqualTo(Duration.ofSeconds(12));
        for (int i = 0; i < 8; i++) {
            scarce.took(Duration.ofSeconds(12));
            assertThat(scarce.next(boot)).isEqualTo(Duration.ofSeconds(12));
        }
    }
}
