package dev.parley.analysis;

import static dev.parley.analysis.SampleRows.START;
import static dev.parley.analysis.SampleRows.compiling;
import static dev.parley.analysis.SampleRows.times;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AnalysisTest {
    @TempDir
    Path folder;

    private RunStore store;

    @BeforeEach
    void create() {
        store = SampleRows.store(folder);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static TrialSpec spec(int id, String technology, String message, int restart) {
        return SampleRows.spec(id, technology, message, new Load.Closed(1), restart, 2);
    }

    /** Two seconds of one client whose replies all took {@code ms}. */
    private static List<SecondRow> seconds(int id, double ms, int wrong) {
        int n = (int) (1_000 / ms);
        long[] times = times(n, ms);
        List<SecondRow> rows = new ArrayList<>();
        rows.add(new SecondRow(id, -1, 7, 0, 0, 0, 0, Encoded.of(900_000_000L)));
        rows.add(new SecondRow(id, 0, n, 0, wrong, 0, 0, Encoded.of(times)));
        rows.add(new SecondRow(id, 1, n, 0, 0, 0, 0, Encoded.of(times)));
        return rows;
    }

    /** A warm trial, unless the figures say otherwise. */
    private void finished(TrialSpec spec, double ms, int wrong, List<String> voidReasons, FigureRow... figures) {
        List<FigureRow> all = new ArrayList<>(List.of(figures));
        if (all.stream().noneMatch(f -> f.metric() == Metric.COMPILING_SHARE)) {
            all.add(compiling(spec.id(), 2));
        }
        store.append(
                SampleRows.ended(spec, TrialRow.State.FINISHED, voidReasons),
                seconds(spec.id(), ms, wrong),
                List.of(),
                all);
    }

    private static Summary find(Analysis analysis, String technology, String message, Metric metric) {
        return analysis.summaries().stream()
                .filter(s -> s.technology().equals(technology) && s.message().equals(message) && s.metric() == metric)
                .reduce((a, b) -> {
                    throw new AssertionError("twice: " + a + " and " + b);
                })
                .orElseThrow();
    }

    @Test
    void medianOverRestartsWithoutWarmUp() {
        List<TrialSpec> plan = new ArrayList<>();
        for (int r = 1; r <= 5; r++) {
            plan.add(spec(r, "rest", "text:10", r));
        }
        store.appendPlan(plan);
        double[] ms = {1, 2, 4, 5, 10};
        for (int r = 1; r <= 5; r++) {
            finished(plan.get(r - 1), ms[r - 1], 0, List.of());
        }
        Summary mean = find(Analysis.of(store), "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(mean.estimate().value()).isCloseTo(4, within(0.01));
        assertThat(mean.estimate().low()).isLessThan(4);
        assertThat(mean.estimate().high()).isGreaterThan(4);
        assertThat(mean.restarts()).isEqualTo(5);
        assertThat(mean.validity()).isEqualTo("valid");
        Analysis analysis = Analysis.of(store);
        assertThat(find(analysis, "rest", "text:10", Metric.THROUGHPUT)
                        .estimate()
                        .value())
                .isEqualTo(250);
        assertThat(find(analysis, "rest", "text:10", Metric.LATENCY_P99).validity())
                .isEqualTo("indicative: 200 samples of 1000");
        assertThat(find(analysis, "rest", "text:10", Metric.LATENCY_MAX)
                        .estimate()
                        .high())
                .as("warm-up's 900 ms stays out")
                .isLessThan(11);
    }

    @Test
    void processorTimeForARequestIsThatOfAllServices() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1)));
        finished(
                spec(0, "rest", "text:10", 1),
                10,
                0,
                List.of(),
                new FigureRow(0, Metric.CPU_SHARE, "m1", 30),
                new FigureRow(0, Metric.CPU_SHARE, "m2", 20),
                new FigureRow(0, Metric.CPU_SHARE, FigureRow.EMPTY, 1));
        Analysis analysis = Analysis.of(store);
        // half a core for two seconds, two hundred replies
        assertThat(find(analysis, "rest", "text:10", Metric.CPU_PER_REQUEST)
                        .estimate()
                        .value())
                .isCloseTo(5, within(1e-9));
        assertThat(find(analysis, "rest", "text:10", Metric.CPU_SHARE)
                        .estimate()
                        .value())
                .isEqualTo(50);
        assertThat(analysis.details())
                .filteredOn(d -> d.metric() == Metric.CPU_SHARE)
                .extracting(Summary::subject)
                .containsExactly("m1", "m2");
    }

    @Test
    void figuresOfABootServeEveryMessageAndStandBesideTheEmptyService() {
        TrialSpec first = spec(0, "rest", "text:10", 1);
        TrialSpec second = spec(1, "rest", "text:1000", 1);
        store.appendPlan(List.of(first, second));
        finished(
                first,
                1,
                0,
                List.of("generator busy"),
                new FigureRow(0, Metric.BOOT_TIME, "m1", 500),
                new FigureRow(0, Metric.BOOT_TIME, "m2", 700),
                new FigureRow(0, Metric.BOOT_TIME, FigureRow.EMPTY, 300));
        finished(second, 2, 0, List.of());
        Summary boot = find(Analysis.of(store), "rest", "text:1000", Metric.BOOT_TIME);
        assertThat(boot.estimate().value()).isEqualTo(600);
        assertThat(boot.empty()).isEqualTo(300);
        assertThat(boot.validity()).isEqualTo("indicative: 1 restart");
    }

    @Test
    void voidTrialsStayOutAndACellOfOnlyVoidTrialsShowsItsFiguresFlagged() {
        store.appendPlan(List.of(
                spec(0, "rest", "text:10", 1),
                spec(1, "rest", "text:10", 2),
                spec(2, "grpc", "text:10", 1),
                spec(3, "grpc", "text:10", 2)));
        finished(spec(0, "rest", "text:10", 1), 1, 0, List.of());
        finished(spec(1, "rest", "text:10", 2), 5, 0, List.of("generator core 91 % busy"));
        finished(spec(2, "grpc", "text:10", 1), 2, 3, List.of());
        finished(spec(3, "grpc", "text:10", 2), 2, 0, List.of("swap seen"));
        Analysis analysis = Analysis.of(store);
        Summary rest = find(analysis, "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(rest.estimate().value()).isCloseTo(1, within(0.01));
        assertThat(rest.validity()).isEqualTo("too few: 1 of 2 restarts");
        assertThat(rest.counts()).isFalse();
        Summary grpc = find(analysis, "grpc", "text:10", Metric.LATENCY_MEAN);
        assertThat(grpc.estimate().value()).isCloseTo(2, within(0.01));
        assertThat(grpc.validity()).isEqualTo("void: 3 wrong replies; swap seen");
        assertThat(analysis.comparisons())
                .allSatisfy(c -> assertThat(c.verdict().kind()).isEqualTo(Verdict.Kind.VOID));
    }

    /** Five restarts of six count on either side, and four on both: a ratio of four is indicative. */
    @Test
    void aComparisonRestsOnTheRestartsThatBothHave() {
        List<TrialSpec> plan = new ArrayList<>();
        for (int restart = 1; restart <= 6; restart++) {
            plan.add(spec(plan.size(), "rest", "text:10", restart));
            plan.add(spec(plan.size(), "grpc", "text:10", restart));
        }
        store.appendPlan(plan);
        for (TrialSpec one : plan) {
            boolean isRest = one.technology().equals("rest");
            boolean isLost = one.restart() == (isRest ? 6 : 1);
            finished(one, isRest ? 4 : 2, 0, isLost ? List.of("swap seen") : List.of());
        }
        Analysis analysis = Analysis.of(store);
        assertThat(find(analysis, "rest", "text:10", Metric.LATENCY_MEDIAN).restarts())
                .isEqualTo(5);
        assertThat(find(analysis, "grpc", "text:10", Metric.LATENCY_MEDIAN).restarts())
                .isEqualTo(5);
        assertThat(analysis.comparisons())
                .filteredOn(c -> c.metric() == Metric.LATENCY_MEDIAN)
                .singleElement()
                .satisfies(c -> {
                    assertThat(c.ratio().value()).isCloseTo(2, within(0.01));
                    assertThat(c.indicative()).isTrue();
                });
    }

    @Test
    void aCellOfColdTrialsIsShownColdAndHeldAgainstNothing() {
        store.appendPlan(List.of(
                spec(0, "rest", "text:10", 1),
                spec(1, "rest", "text:10", 2),
                spec(2, "grpc", "text:10", 1),
                spec(3, "grpc", "text:10", 2)));
        finished(spec(0, "rest", "text:10", 1), 9, 0, List.of(), compiling(0, 46), boot(0));
        finished(spec(1, "rest", "text:10", 2), 7, 0, List.of(), compiling(1, 10.4), boot(1));
        finished(spec(2, "grpc", "text:10", 1), 2, 0, List.of(), compiling(2, 10));
        finished(spec(3, "grpc", "text:10", 2), 2, 0, List.of());
        Analysis analysis = Analysis.of(store);
        assertThat(analysis.trials())
                .extracting(JudgedTrial::isCold, JudgedTrial::isVoid, JudgedTrial::isValid)
                .containsExactly(
                        tuple(true, false, false),
                        tuple(true, false, false),
                        tuple(false, false, true),
                        tuple(false, false, true));
        Summary cold = find(analysis, "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(cold.estimate().value()).as("kept").isCloseTo(8, within(0.01));
        assertThat(cold.validity())
                .isEqualTo("cold: compilers took 46.0 % of the services' processor time (at most 10 %);"
                        + " compilers took 10.4 % of the services' processor time (at most 10 %)");
        assertThat(cold.counts()).isFalse();
        assertThat(find(analysis, "rest", "text:10", Metric.BOOT_TIME).validity())
                .as("cold by nature, and comparable as such")
                .isEqualTo("indicative: 2 restarts");
        assertThat(analysis.comparisons()).hasSize(4).allSatisfy(c -> {
            assertThat(c.verdict().kind()).isEqualTo(Verdict.Kind.COLD);
            assertThat(c.reversed().verdict().kind()).isEqualTo(Verdict.Kind.COLD);
            assertThat(c.ratio().isPresent()).isFalse();
        });
    }

    @Test
    void aCellOfUnknownWarmthDecidesNothingAndSaysSo() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1), spec(1, "grpc", "text:10", 1)));
        finished(spec(0, "rest", "text:10", 1), 9, 0, List.of("unknown: nothing tells"));
        finished(spec(1, "grpc", "text:10", 1), 2, 0, List.of());
        Analysis analysis = Analysis.of(store);
        assertThat(analysis.trials())
                .extracting(JudgedTrial::isUnknown, JudgedTrial::isCold, JudgedTrial::isVoid, JudgedTrial::isValid)
                .containsExactly(tuple(true, false, false, false), tuple(false, false, false, true));
        Summary unknown = find(analysis, "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(unknown.estimate().value()).as("kept").isCloseTo(9, within(0.01));
        assertThat(unknown.validity()).isEqualTo("unknown: nothing tells");
        assertThat(unknown.counts()).isFalse();
        assertThat(analysis.comparisons()).hasSize(4).allSatisfy(c -> {
            assertThat(c.verdict().kind()).isEqualTo(Verdict.Kind.UNKNOWN);
            assertThat(c.reversed().verdict().kind()).isEqualTo(Verdict.Kind.UNKNOWN);
            assertThat(c.ratio().isPresent()).isFalse();
        });
    }

    @Test
    void aCellOfColdAndUnknownTrialsIsCold() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1), spec(1, "rest", "text:10", 2)));
        finished(spec(0, "rest", "text:10", 1), 9, 0, List.of("unknown: nothing tells"));
        finished(spec(1, "rest", "text:10", 2), 7, 0, List.of(), compiling(1, 46));
        Summary mean = find(Analysis.of(store), "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(mean.estimate().value()).isCloseTo(8, within(0.01));
        assertThat(mean.validity())
                .isEqualTo("cold: nothing tells; compilers took 46.0 % of the services' processor time (at most 10 %)");
    }

    /** A paper may ask how the first calls are: their figures are compared, and called what they are. */
    @Test
    void aColdStartThatWasAskedForCountsAndIsCalledSo() {
        List<TrialSpec> plan = new ArrayList<>();
        for (int restart = 1; restart <= 3; restart++) {
            for (String technology : List.of("rest", "grpc")) {
                plan.add(new TrialSpec(
                        plan.size(),
                        technology,
                        Topology.parse("line:1"),
                        "messages",
                        MessageSpec.parse("text:10"),
                        Load.parse("rounds:10x10:10:600s:shared"),
                        restart,
                        restart,
                        new TrialSpec.Window(Duration.ZERO, Duration.ZERO, Duration.ofSeconds(2)),
                        Duration.ofSeconds(1)));
            }
        }
        store.appendPlan(plan);
        for (TrialSpec spec : plan) {
            FigureRow unrehearsed = new FigureRow(spec.id(), Metric.REHEARSAL_TIME, FigureRow.SYSTEM, 0);
            finished(
                    spec,
                    spec.technology().equals("rest") ? 10 : 2,
                    0,
                    List.of(),
                    compiling(spec.id(), 80),
                    unrehearsed);
        }
        Analysis analysis = Analysis.of(store);
        assertThat(analysis.trials())
                .allMatch(JudgedTrial::isValid)
                .allMatch(analysis::isColdStart)
                .allSatisfy(trial -> assertThat(analysis.compilingShare(trial)).hasValue(80));
        Summary mean = find(analysis, "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(mean.validity()).isEqualTo("cold start; 3 restarts");
        assertThat(mean.counts()).isTrue();
        assertThat(mean.isColdStart()).isTrue();
        assertThat(analysis.comparisons())
                .filteredOn(c -> c.metric() == Metric.LATENCY_MEDIAN)
                .allSatisfy(c -> assertThat(c.ratio().isPresent()).isTrue());
    }

    private static FigureRow boot(int id) {
        return new FigureRow(id, Metric.BOOT_TIME, "m1", 500);
    }

    @Test
    void coldTrialsStayOutOfACellThatHasWarmOnes() {
        store.appendPlan(
                List.of(spec(0, "rest", "text:10", 1), spec(1, "rest", "text:10", 2), spec(2, "rest", "text:10", 3)));
        finished(spec(0, "rest", "text:10", 1), 1, 0, List.of());
        finished(spec(1, "rest", "text:10", 2), 5, 0, List.of(), compiling(1, 30));
        finished(spec(2, "rest", "text:10", 3), 9, 1, List.of(), compiling(2, 30));
        Summary mean = find(Analysis.of(store), "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(mean.estimate().value()).isCloseTo(1, within(0.01));
        assertThat(mean.validity()).isEqualTo("too few: 1 of 3 restarts");
    }

    @Test
    void survivorsAreCountedBesideWhatTheyAreOf() {
        List<TrialSpec> plan = new ArrayList<>();
        for (int restart = 1; restart <= 6; restart++) {
            plan.add(spec(plan.size(), "rest", "text:10", restart));
            plan.add(spec(plan.size(), "grpc", "text:10", restart));
        }
        store.appendPlan(plan);
        for (TrialSpec spec : plan) {
            boolean isRest = spec.technology().equals("rest");
            // of REST the first restart was cold and the sixth never ended, of gRPC the last four were cold
            boolean isCold = isRest ? spec.restart() == 1 : spec.restart() > 2;
            if (isRest && spec.restart() == 6) {
                continue;
            }
            finished(
                    spec,
                    isRest ? 4 : 2,
                    0,
                    List.of(),
                    compiling(spec.id(), isCold ? 30 : 2),
                    new FigureRow(spec.id(), Metric.BOOT_TIME, "m1", 500));
        }
        Analysis analysis = Analysis.of(store);
        Summary rest = find(analysis, "rest", "text:10", Metric.LATENCY_MEDIAN);
        assertThat(rest.survivors()).isEqualTo("4 of 5");
        assertThat(rest.validity()).isEqualTo("indicative: 4 of 5 restarts");
        assertThat(rest.counts()).isTrue();
        Summary grpc = find(analysis, "grpc", "text:10", Metric.LATENCY_MEDIAN);
        assertThat(grpc.validity()).isEqualTo("too few: 2 of 6 restarts");
        assertThat(grpc.counts()).isFalse();
        assertThat(find(analysis, "grpc", "text:10", Metric.BOOT_TIME).validity())
                .as("cold by nature")
                .isEqualTo("valid");
        assertThat(analysis.comparisons())
                .filteredOn(c -> c.metric() == Metric.LATENCY_MEDIAN)
                .singleElement()
                .satisfies(c -> assertThat(c.verdict())
                        .hasToString("undecided (1 of 6 restarts count, and more than half must)"))
                .satisfies(c -> assertThat(c.reversed().verdict()).isEqualTo(c.verdict()));
    }

    /** Restart 2 was slow for both, and REST alone lost it. */
    @Test
    void figuresToComputeWithKnowTheirRestarts() {
        store.appendPlan(List.of(
                spec(0, "rest", "text:10", 1),
                spec(1, "rest", "text:10", 2),
                spec(2, "rest", "text:10", 3),
                spec(3, "grpc", "text:10", 2)));
        finished(spec(0, "rest", "text:10", 1), 1, 0, List.of());
        finished(spec(1, "rest", "text:10", 2), 9, 1, List.of());
        finished(spec(2, "rest", "text:10", 3), 2, 0, List.of());
        finished(spec(3, "grpc", "text:10", 2), 10, 0, List.of());
        Situation situation = Situation.of(spec(0, "rest", "text:10", 1));
        Redrawn rest = Analysis.of(store)
                .redrawn("rest", situation, Metric.LATENCY_MEAN)
                .orElseThrow();
        assertThat(rest.byRestart()).containsOnlyKeys(1, 3);
        assertThat(rest.tried()).isEqualTo(3);
        assertThat(rest.isMean()).isFalse();
        assertThat(Analysis.of(store)
                        .redrawn("rest", situation, Metric.SUCCESS_SHARE)
                        .orElseThrow()
                        .isMean())
                .isTrue();
        assertThat(Analysis.of(store)
                        .redrawn("grpc", situation, Metric.LATENCY_MEAN)
                        .orElseThrow()
                        .byRestart())
                .containsOnlyKeys(2);
    }

    @Test
    void whereNoneIsWarmWhatIsVoidStaysOutOfTheColdFigures() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1), spec(1, "rest", "text:10", 2)));
        finished(spec(0, "rest", "text:10", 1), 1, 0, List.of(), compiling(0, 30));
        finished(spec(1, "rest", "text:10", 2), 9, 1, List.of(), compiling(1, 30));
        Summary mean = find(Analysis.of(store), "rest", "text:10", Metric.LATENCY_MEAN);
        assertThat(mean.estimate().value()).isCloseTo(1, within(0.01));
        assertThat(mean.isCold()).isTrue();
    }

    @Test
    void aTrialThatFailedOrNeverRanIsARowWithItsReason() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1), spec(1, "grpc", "text:10", 1)));
        store.append(new TrialRow(
                spec(0, "rest", "text:10", 1),
                TrialRow.State.FAILED,
                START,
                START,
                List.of(),
                "m3 ended with exit code 137"));
        Analysis analysis = Analysis.of(store);
        assertThat(find(analysis, "rest", "text:10", Metric.LATENCY_MEAN).validity())
                .isEqualTo("void: failed: m3 ended with exit code 137");
        assertThat(find(analysis, "rest", "text:10", Metric.LATENCY_MEAN)
                        .estimate()
                        .isPresent())
                .isFalse();
        assertThat(find(analysis, "grpc", "text:10", Metric.THROUGHPUT).validity())
                .isEqualTo("void: not run");
        assertThat(analysis.unfinished()).isEqualTo(1);
    }

    @Test
    void littlesLawTellsLostTime() {
        TrialSpec spec = spec(0, "rest", "text:10", 1);
        assertThat(Validity.reasons(spec, seconds(0, 1, 0), List.of())).isEmpty();
        List<SecondRow> half = List.of(
                new SecondRow(0, 0, 500, 0, 0, 0, 0, Encoded.of(times(500, 1))),
                new SecondRow(0, 1, 500, 0, 0, 0, 0, Encoded.of(times(500, 1))));
        assertThat(Validity.reasons(spec, half, List.of()))
                .containsExactly("Little's law off by -50 %: 0.50 requests in the system, 1 clients");
    }

    @Test
    void aReasonThatTheGeneratorGaveIsNotGivenTwice() {
        store.appendPlan(List.of(spec(0, "rest", "text:10", 1)));
        finished(spec(0, "rest", "text:10", 1), 1, 3, List.of("3 wrong replies", "Little's law is off: 0.50"));
        assertThat(Analysis.of(store).trials().getFirst().reasons())
                .containsExactly("3 wrong replies", "Little's law is off: 0.50");
    }

    @Test
    void theFirstCallBelongsToTheBootWhateverWasSentAfterwards() {
        store.appendPlan(List.of(
                spec(0, "rest", "text:10", 1), spec(1, "rest", "text:1000", 1),
                spec(2, "rest", "text:1000", 2), spec(3, "rest", "text:10", 2)));
        finished(
                spec(0, "rest", "text:10", 1),
                1,
                0,
                List.of(),
                new FigureRow(0, Metric.FIRST_CALL, FigureRow.SYSTEM, 80));
        finished(
                spec(2, "rest", "text:1000", 2),
                1,
                0,
                List.of(),
                new FigureRow(2, Metric.FIRST_CALL, FigureRow.SYSTEM, 90));
        Analysis analysis = Analysis.of(store);
        for (String message : List.of("text:10", "text:1000")) {
            Summary first = find(analysis, "rest", message, Metric.FIRST_CALL);
            assertThat(first.restarts()).isEqualTo(2);
            assertThat(first.estimate().value()).isEqualTo(85);
        }
    }

    @Test
    void requestsThatCouldNotBeSentVoidATrialAboveOneInAThousand() {
        TrialSpec spec = spec(0, "rest", "text:10", 1);
        List<SecondRow> rows = List.of(new SecondRow(0, 0, 998, 0, 0, 0, 2, new byte[0]));
        assertThat(Validity.reasons(spec, rows, List.of()))
                .containsExactly("0.20 % of requests could not be sent (at most 0.1 %)");
    }

    @Test
    void hopsAreNamedOneByOne() {
        TrialSpec spec = spec(0, "rest", "text:10", 1);
        store.appendPlan(List.of(spec));
        store.append(
                SampleRows.ended(spec, TrialRow.State.FINISHED, List.of()),
                seconds(0, 1, 0),
                List.of(
                        new HistogramRow(0, HistogramRow.Kind.HOP, "m1>m2", Encoded.of(2_000_000)),
                        new HistogramRow(0, HistogramRow.Kind.HOP, "m2>m3", Encoded.of(1_000_000))),
                List.of(compiling(0, 2)));
        Analysis analysis = Analysis.of(store);
        assertThat(find(analysis, "rest", "text:10", Metric.HOP_MEAN).estimate().value())
                .isCloseTo(1.5, within(0.01));
        assertThat(analysis.details())
                .filteredOn(d -> d.metric() == Metric.HOP_MEAN)
                .extracting(Summary::subject)
                .containsExactly("m1>m2", "m2>m3");
    }
}
