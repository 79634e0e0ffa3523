package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PlanTest {
    private static Study study(long seed, int restarts) {
        return study(seed, restarts, MessageSpec.parse("text:1000"), MessageSpec.parse("types:100"));
    }

    private static Study study(long seed, int restarts, MessageSpec... messages) {
        return new Study(
                "a test",
                List.of("rest", "grpc", "rpcx"),
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(messages),
                List.of(new Load.Closed(1), new Load.Closed(16)),
                Effort.QUICK,
                restarts,
                Duration.ofSeconds(1),
                seed,
                Limits.NONE);
    }

    @Test
    void everyTechnologyBootsOnceInEveryBlock() {
        Plan plan = Plan.of(study(1, 3));
        assertThat(plan.boots()).hasSize(9);
        for (int block = 1; block <= 3; block++) {
            int b = block;
            assertThat(plan.boots().stream().filter(boot -> boot.block() == b).map(Plan.Boot::technology))
                    .containsExactlyInAnyOrder("rest", "grpc", "rpcx");
        }
    }

    @Test
    void everyCellIsThereOnceARestartAndIdsFollowTheOrder() {
        List<TrialSpec> trials = Plan.of(study(1, 3)).trials();
        assertThat(trials).hasSize(36);
        assertThat(trials.stream().map(TrialSpec::id))
                .containsExactlyElementsOf(IntStream.range(0, 36).boxed().toList());
        assertThat(trials.stream()
                        .map(t -> t.technology() + t.message() + t.load() + t.restart())
                        .distinct())
                .hasSize(36);
    }

    /** One that met the large message first would be warmer, and larger, at the small one. */
    @Test
    void allTechnologiesOfABlockCarryTheSameInTheSameOrder() {
        Plan.of(study(1, 6)).boots().stream()
                .collect(java.util.stream.Collectors.groupingBy(Plan.Boot::block))
                .values()
                .forEach(block -> assertThat(block.stream()
                                .map(boot -> boot.trials().stream()
                                        .map(t -> t.message() + " " + t.load())
                                        .toList())
                                .distinct())
                        .hasSize(1));
        assertThat(Plan.of(study(1, 6)).boots().stream()
                        .map(boot -> boot.trials().getFirst().message() + " "
                                + boot.trials().getFirst().load())
                        .distinct())
                .as("and blocks differ")
                .hasSizeGreaterThan(1);
    }

    @Test
    void eachTechnologyIsAtEachPlaceOnceInAsManyBlocks() {
        List<String> order =
                Plan.of(study(1, 3)).boots().stream().map(Plan.Boot::technology).toList();
        for (int place = 0; place < 3; place++) {
            assertThat(List.of(order.get(place), order.get(3 + place), order.get(6 + place)))
                    .containsExactlyInAnyOrder("rest", "grpc", "rpcx");
        }
    }

    @Test
    void servicesThatAreAloneCarryOneMessage() {
        Study all = study(1, 3);
        Study alone = new Study(
                all.title(),
                all.technologies(),
                all.topologies(),
                all.work(),
                all.offerings(),
                all.effort(),
                all.restarts(),
                all.limit(),
                all.seed(),
                all.limits(),
                true);
        assertThat(Plan.of(alone).trials()).hasSameSizeAs(Plan.of(all).trials());
        assertThat(Plan.of(alone).boots()).hasSize(18).allSatisfy(boot -> {
            assertThat(boot.trials().stream().map(TrialSpec::message).distinct())
                    .hasSize(1);
            assertThat(boot.trials()).hasSize(2);
        });
    }

    @Test
    void theSameSeedGivesTheSamePlanAndAnotherSeedAnother() {
        assertThat(Plan.of(study(1, 5))).isEqualTo(Plan.of(study(1, 5)));
        assertThat(Plan.of(study(1, 5))).isNotEqualTo(Plan.of(study(2, 5)));
    }

    /**
     * Six boots of 2.4 to 5.6 s with 3 s of slices to 31 s of rehearsal, 12 trials of 5.4 s, two empty services, three
     * descriptions, the generator's ceiling and a report of 12 trials.
     */
    @Test
    void aQuickComparisonTakesUnderFiveMinutesWithAllThatStandsAroundIt() {
        TimeRange estimate =
                Plan.of(study(1, 2, MessageSpec.parse("types:100"))).estimate();
        int known = 12 * 5_400 + 2 * 1_000 + 3 * 500 + 6_000;
        assertThat(estimate)
                .isEqualTo(new TimeRange(
                        Duration.ofMillis(6 * (2_400 + 3_000) + known + 1_240),
                        Duration.ofMillis(6 * (5_600 + 31_000) + known + 4_200)))
                .hasToString("2 to 5 min");
        assertThat(estimate.most()).isLessThan(Duration.ofMinutes(5));
    }

    /** It is measured anew each quarter of an hour. */
    @Test
    void aLongRunMeasuresTheGeneratorsCeilingMoreThanOnce() {
        Plan plan = Plan.of(study(1, 100));
        TimeRange parts = plan.afterBoots().plus(Duration.ofMillis(3 * 500));
        for (Plan.Boot boot : plan.boots()) {
            parts = parts.plus(Plan.estimate(boot));
        }
        long quarters = parts.most().dividedBy(Duration.ofMinutes(15));
        assertThat(quarters).isGreaterThan(10);
        assertThat(plan.estimate().most()).isEqualTo(parts.most().plus(Plan.CEILING.multipliedBy(1 + quarters)));
    }

    private static Plan of(String load) {
        Study all = study(1, 1);
        return Plan.of(new Study(
                all.title(),
                List.of("rpcx"),
                all.topologies(),
                all.work(),
                List.of(MessageSpec.parse("text:10")),
                List.of(Load.parse(load)),
                new Effort(
                        "own", 1, Duration.ZERO, Duration.ofSeconds(2), Duration.ofSeconds(5), Duration.ofSeconds(5)),
                1,
                all.limit(),
                1,
                all.limits()));
    }

    /** A search counted as a window of 5 s, and took a minute and a half. */
    @Test
    void aSearchTakesTwoTriesToThoseOfAllItsDoublingsAndHalvings() {
        assertThat(Plan.estimate(of("highest:100-800:p99:50ms:4s").trials().getFirst()))
                .isEqualTo(new TimeRange(Duration.ofSeconds(2 + 2 * 4), Duration.ofSeconds(5 + (3 + 10) * 4)));
        assertThat(Plan.estimate(of("highest:100-100:p99:50ms:4s").trials().getFirst())
                        .least())
                .as("its one rate is met at once")
                .isEqualTo(Duration.ofSeconds(2 + 4));
        assertThat(Plan.estimate(of("highest:0.000001-10000000:p99:50ms:4s")
                                .trials()
                                .getFirst())
                        .most())
                .as("44 doublings from the lowest rate there is to the highest")
                .isEqualTo(Duration.ofSeconds(5 + (44 + 10) * 4));
    }

    @Test
    void aLoadWhoseWorkDecidesItsLengthHasNoEndThatIsKnown() {
        for (String load : List.of("burst:5:1", "rounds:10x10:2:600s:shared", "users:5:1s:1")) {
            assertThat(of(load).isOpenEnded()).as(load).isTrue();
        }
        for (String load : List.of("closed:1", "open:5:even", "highest:1-2:p99:50ms:1s", "held:5:1s:1")) {
            assertThat(of(load).isOpenEnded()).as(load).isFalse();
        }
    }

    @Test
    void theEstimateHasTheSlicesThatAreNeededInIt() {
        Study all = study(1, 3);
        Effort brief =
                new Effort("own", 3, Duration.ofMillis(100), Duration.ZERO, Duration.ZERO, Duration.ofSeconds(1));
        Study asked = new Study(
                all.title(),
                all.technologies(),
                all.topologies(),
                all.work(),
                all.offerings(),
                brief,
                1,
                all.limit(),
                1,
                all.limits());
        TimeRange four = Plan.estimate(Plan.of(asked).boots().getLast());
        assertThat(four)
                .as("2 messages by 1 and by 16 clients, 2 slices of 200 ms each")
                .isEqualTo(new TimeRange(
                        Duration.ofMillis(2_400 + 4 * 2 * 200 + 4 * 1_200),
                        Duration.ofMillis(5_600 + 4 * 2 * 200 + 4 * 1_200)));
    }

    @Test
    void messagesWithLoadsOfTheirOwnComeAfterTheOthersInTheSameBoot() {
        Study one = study(1, 3);
        Study two = new Study(
                one.title(),
                one.technologies(),
                one.topologies(),
                one.work(),
                List.of(
                        one.offerings().getFirst(),
                        new Study.Offering(List.of(MessageSpec.parse("types:10")), List.of(new Load.Burst(5, 1)))),
                one.effort(),
                one.restarts(),
                one.limit(),
                one.seed(),
                one.limits());
        assertThat(Plan.of(two).boots()).hasSize(9).allSatisfy(boot -> {
            assertThat(boot.trials()).hasSize(5);
            assertThat(boot.trials().getLast().message()).hasToString("types:10");
            assertThat(boot.trials().getLast().load()).hasToString("burst:5:1");
            assertThat(boot.trials()).extracting(TrialSpec::load).containsOnlyOnce(new Load.Burst(5, 1));
        });
    }

    @Test
    void nothingIsMeasuredTwice() {
        assertThatThrownBy(() -> new Study(
                        "a test",
                        List.of("rest"),
                        List.of(Topology.parse("line:2")),
                        "messages",
                        List.of(MessageSpec.parse("text:10"), MessageSpec.parse("text:10")),
                        List.of(new Load.Closed(1)),
                        Effort.QUICK,
                        3,
                        Duration.ofSeconds(1),
                        1,
                        Limits.NONE))
                .isInstanceOf(BadInput.class);
    }
}
