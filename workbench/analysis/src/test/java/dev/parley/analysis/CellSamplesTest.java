package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Target;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** One cell's figures from rows that stand here, against arithmetic on paper. Times under 2 048 ns are kept exactly. */
class CellSamplesTest {
    private static final Instant START = Instant.parse("2026-11-21T08:00:00Z");

    private final List<TrialSpec> plan = new ArrayList<>();
    private final List<JudgedTrial> trials = new ArrayList<>();
    private final List<SecondRow> seconds = new ArrayList<>();
    private final List<HistogramRow> histograms = new ArrayList<>();
    private final List<FigureRow> figures = new ArrayList<>();

    private TrialSpec trial(
            int id, String technology, String topology, String message, int restart, String... reasons) {
        TrialSpec spec = new TrialSpec(
                id,
                technology,
                Topology.parse(topology),
                "messages",
                MessageSpec.parse(message),
                new Load.Closed(1),
                restart,
                restart,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(2)),
                Duration.ofSeconds(1));
        plan.add(spec);
        trials.add(new JudgedTrial(
                new TrialRow(spec, TrialRow.State.FINISHED, START, START, List.of(reasons), ""), List.of(reasons)));
        return spec;
    }

    private TrialSpec rest(int id, int restart, String... reasons) {
        return trial(id, "rest", "line:2", "text:10", restart, reasons);
    }

    private void second(int id, int second, long late, long wrong, long... times) {
        seconds.add(new SecondRow(id, second, times.length, late, wrong, 0, 0, Encoded.of(times)));
    }

    private void figure(int id, Metric metric, String subject, double value) {
        figures.add(new FigureRow(id, metric, subject, value));
    }

    private void histogram(int id, HistogramRow.Kind kind, String subject, long... times) {
        histograms.add(new HistogramRow(id, kind, subject, Encoded.of(times)));
    }

    private CellSamples samples() {
        RunRows rows = new RunRows(
                new Run("r", START, "c", 1, "x", Map.of(), "25", List.of(), List.of()),
                plan,
                trials,
                seconds.stream().collect(Collectors.groupingBy(SecondRow::trialId)),
                histograms.stream().collect(Collectors.groupingBy(HistogramRow::trialId)),
                figures.stream().collect(Collectors.groupingBy(FigureRow::trialId)),
                List.of());
        Cell cell = Cell.of(plan.getFirst());
        return new CellSamples(
                rows,
                cell,
                trials.stream()
                        .filter(t -> Cell.of(t.row().spec()).equals(cell))
                        .toList(),
                9);
    }

    /** A value for each restart. */
    private static SortedMap<Integer, Double> points(Sample sample) {
        SortedMap<Integer, Double> points = new TreeMap<>();
        for (int i = 0; i < sample.count(); i++) {
            points.put(sample.restarts()[i], sample.points()[i]);
        }
        return points;
    }

    private SortedMap<Integer, Double> points(Metric metric) {
        return points(samples().of(metric));
    }

    @Test
    void eachRestartHasAPointFromItsOwnSeconds() {
        rest(1, 1);
        rest(2, 3);
        second(1, -1, 0, 0, 2000);
        second(1, 0, 0, 0, 100, 300);
        second(1, 1, 0, 0, 200);
        second(2, 0, 0, 0, 500);
        assertThat(points(Metric.LATENCY_MEAN)).isEqualTo(Map.of(1, 200e-6, 3, 500e-6));
        assertThat(points(Metric.THROUGHPUT)).isEqualTo(Map.of(1, 1.5, 3, 0.5));
        assertThat(samples().leastSamples()).isEqualTo(1);
        assertThat(samples().distribution().total()).isEqualTo(4);
        assertThat(samples().distribution().percentileNs(100)).isEqualTo(500);
        assertThat(samples().counted()).hasSize(2);
    }

    @Test
    void aPercentileOfAllThatWasDueIsTheCellsOwnWhereEveryRequestWasAnswered() {
        rest(1, 1);
        second(1, 0, 0, 0, 100, 300, 500);
        Sample due = samples().ofDue(Target.Figure.P50, new SplittableRandom(1));
        assertThat(points(due)).isEqualTo(Map.of(1, 300e-6));
        assertThat(due.pools().getFirst())
                .isEqualTo(samples().of(Metric.LATENCY_MEDIAN).pools().getFirst());
        assertThat(samples().notSent()).isZero();
    }

    /** Restart 1 answers three of five, restart 2 one of four: its median is one of those that never came. */
    @Test
    void aRestartWhosePercentileHasNoReplyStaysInTheSampleAsInfinite() {
        rest(1, 1);
        rest(2, 2);
        rest(3, 3);
        second(1, 0, 2, 0, 100, 300, 500);
        second(2, 0, 0, 3, 700);
        Sample due = samples().ofDue(Target.Figure.P50, new SplittableRandom(1));
        assertThat(points(due)).isEqualTo(Map.of(1, 500e-6, 2, Double.POSITIVE_INFINITY));
        assertThat(due.pools()).hasSize(2).allSatisfy(pool -> assertThat(pool).hasSize(Sample.POOL));
        assertThat(due.tried()).isEqualTo(3);
        assertThat(points(Metric.LATENCY_MEDIAN)).isEqualTo(Map.of(1, 300e-6, 2, 700e-6));
    }

    @Test
    void severalTrialsOfARestartMakeOnePointTheirMedian() {
        rest(1, 1);
        rest(2, 1);
        rest(3, 1);
        second(1, 0, 0, 0, 100);
        second(2, 0, 0, 0, 900);
        second(3, 0, 0, 0, 200);
        assertThat(points(Metric.LATENCY_MEAN)).isEqualTo(Map.of(1, 200e-6));
        List<double[]> pools = samples().of(Metric.LATENCY_MEAN).pools();
        assertThat(pools).hasSize(1);
        // of one second each nothing else can be drawn
        assertThat(pools.getFirst()).hasSize(3 * Sample.POOL);
        assertThat(java.util.Arrays.stream(pools.getFirst()).distinct().sorted().toArray())
                .containsExactly(100e-6, 200e-6, 900e-6);
    }

    @Test
    void secondsAreDrawnAgainWithinARestart() {
        rest(1, 1);
        second(1, 0, 0, 0, 100);
        second(1, 1, 0, 0, 300);
        Sample mean = samples().of(Metric.LATENCY_MEAN);
        assertThat(mean.points()).containsExactly(200e-6);
        assertThat(java.util.Arrays.stream(mean.pools().getFirst())
                        .distinct()
                        .sorted()
                        .toArray())
                .containsExactly(100e-6, 200e-6, 300e-6);
        // the same seed, the same draws
        assertThat(mean.pools().getFirst())
                .isEqualTo(samples().of(Metric.LATENCY_MEAN).pools().getFirst());
    }

    @Test
    void aTrialWithoutSecondsHasNoPoint() {
        rest(1, 1);
        rest(2, 2);
        second(1, 0, 0, 0, 100);
        assertThat(points(Metric.THROUGHPUT)).isEqualTo(Map.of(1, 0.5));
        assertThat(samples().leastSamples()).isZero();
    }

    @Test
    void theWindowsOwnLengthIsWhatRatesAreCountsOver() {
        rest(1, 1);
        second(1, 0, 0, 0, 100, 100);
        figure(1, Metric.WINDOW_LENGTH, FigureRow.SYSTEM, 0.5);
        figure(1, Metric.GENERATOR_CPU, "generator", 77);
        assertThat(points(Metric.THROUGHPUT)).isEqualTo(Map.of(1, 4.0));
    }

    @Test
    void voidTrialsCountOnlyWhereThereIsNoOther() {
        rest(1, 1);
        rest(2, 2, "swap seen");
        second(1, 0, 0, 0, 100);
        second(2, 0, 0, 0, 900);
        assertThat(points(Metric.LATENCY_MEAN)).isEqualTo(Map.of(1, 100e-6));
        trials.removeFirst();
        assertThat(points(Metric.LATENCY_MEAN)).isEqualTo(Map.of(2, 900e-6));
    }

    @Test
    void processorUseIsSummedOverServicesAndAnythingElseIsOfTheTypicalOne() {
        rest(1, 1);
        for (Metric metric : List.of(Metric.CPU_SHARE, Metric.MEMORY_AFTER_LOAD)) {
            figure(1, metric, "m1", 10);
            figure(1, metric, "m2", 30);
            figure(1, metric, "m3", 50);
            figure(1, metric, FigureRow.EMPTY, 1000);
            figure(1, metric, "generator", 2000);
        }
        assertThat(points(Metric.CPU_SHARE)).isEqualTo(Map.of(1, 90.0));
        assertThat(points(Metric.MEMORY_AFTER_LOAD)).isEqualTo(Map.of(1, 30.0));
        assertThat(samples().bySubject(Metric.MEMORY_AFTER_LOAD)).containsOnlyKeys("m1", "m2", "m3");
        assertThat(points(samples().bySubject(Metric.CPU_SHARE).get("m2"))).isEqualTo(Map.of(1, 30.0));
    }

    @Test
    void aFigureOfTheWholeSystemGoesBeforeThoseOfServicesAndIsNoPart() {
        rest(1, 1);
        figure(1, Metric.CPU_SHARE, "m1", 10);
        figure(1, Metric.CPU_SHARE, "m2", 20);
        figure(1, Metric.CPU_SHARE, FigureRow.SYSTEM, 44);
        assertThat(points(Metric.CPU_SHARE)).isEqualTo(Map.of(1, 44.0));
        assertThat(samples().bySubject(Metric.CPU_SHARE)).containsOnlyKeys("m1", "m2");
    }

    @Test
    void oneServiceAloneHasNoParts() {
        rest(1, 1);
        figure(1, Metric.MEMORY_AFTER_LOAD, "m1", 10);
        assertThat(samples().bySubject(Metric.MEMORY_AFTER_LOAD)).isEmpty();
        assertThat(points(Metric.MEMORY_AFTER_LOAD)).isEqualTo(Map.of(1, 10.0));
    }

    @Test
    void processorTimeForARequestIsUseTimesTimeOverAnswers() {
        rest(1, 1);
        rest(2, 2);
        rest(3, 3);
        rest(4, 4);
        second(1, 0, 1, 2, 100);
        second(2, 0, 0, 0, 100, 100);
        second(4, 0, 0, 0);
        figure(1, Metric.CPU_SHARE, "m1", 10);
        figure(1, Metric.CPU_SHARE, "m2", 30);
        figure(1, Metric.CPU_SHARE, FigureRow.EMPTY, 500);
        figure(3, Metric.CPU_SHARE, "m1", 10);
        figure(4, Metric.CPU_SHARE, "m1", 10);
        // 0.4 cores for 2 s over 4 answers; the others lack use, or answers
        assertThat(points(Metric.CPU_PER_REQUEST).keySet()).containsExactly(1);
        assertThat(points(Metric.CPU_PER_REQUEST).get(1)).isCloseTo(200, within(1e-9));
        figure(2, Metric.CPU_PER_REQUEST, FigureRow.SYSTEM, 7);
        assertThat(points(Metric.CPU_PER_REQUEST)).isEqualTo(Map.of(2, 7.0));
    }

    @Test
    void figuresOfABootBelongToEveryTrialOfTheTechnologyAndTopology() {
        rest(1, 1);
        trial(2, "rest", "line:2", "text:1000", 2);
        trial(3, "rest", "line:5", "text:10", 3);
        trial(4, "grpc", "line:2", "text:10", 4);
        for (int id = 1; id <= 4; id++) {
            for (Metric metric :
                    List.of(Metric.BOOT_TIME, Metric.INSTALLED_SIZE, Metric.MEMORY_AFTER_BOOT, Metric.FIRST_CALL)) {
                figure(id, metric, "m1", 10 * id);
                figure(id, metric, "m2", 10 * id + 2);
                figure(id, metric, FigureRow.EMPTY, 1);
            }
        }
        for (Metric metric :
                List.of(Metric.BOOT_TIME, Metric.INSTALLED_SIZE, Metric.MEMORY_AFTER_BOOT, Metric.FIRST_CALL)) {
            assertThat(points(metric)).as(metric.key()).isEqualTo(Map.of(1, 11.0, 2, 21.0));
        }
        assertThat(points(samples().bySubject(Metric.BOOT_TIME).get("m2"))).isEqualTo(Map.of(1, 12.0, 2, 22.0));
    }

    @Test
    void generatorsOwnFiguresAreNoServices() {
        rest(1, 1);
        figure(1, Metric.GENERATOR_CPU, "generator", 40);
        figure(1, Metric.GENERATOR_CEILING, "generator", 9000);
        figure(1, Metric.BOOT_TIME, "generator", 5);
        assertThat(points(Metric.GENERATOR_CPU)).isEqualTo(Map.of(1, 40.0));
        assertThat(points(Metric.GENERATOR_CEILING)).isEqualTo(Map.of(1, 9000.0));
        assertThat(points(Metric.BOOT_TIME)).isEmpty();
    }

    @Test
    void bytesOfAMessageServeEveryLoadWithItWhereTheTrialHasNone() {
        rest(1, 1);
        trial(2, "rest", "line:2", "text:10", 2, "swap seen");
        trial(3, "rest", "line:2", "text:1000", 2);
        trial(4, "grpc", "line:2", "text:10", 2);
        for (int id = 2; id <= 4; id++) {
            figure(id, Metric.WIRE_OUT, FigureRow.SYSTEM, 100 * id);
        }
        // of the void trial too: bytes hang on no load
        assertThat(points(Metric.WIRE_OUT)).isEqualTo(Map.of(2, 200.0));
        figure(1, Metric.WIRE_OUT, FigureRow.SYSTEM, 150);
        figure(1, Metric.WIRE_OUT, FigureRow.EMPTY, 1);
        assertThat(points(Metric.WIRE_OUT)).isEqualTo(Map.of(1, 150.0));
        assertThat(points(Metric.WIRE_BACK)).isEmpty();
    }

    @Test
    void latenessIsTheGeneratorsOwnFigureAndElseOfItsHistogram() {
        rest(1, 1);
        rest(2, 2);
        histogram(1, HistogramRow.Kind.SEND_DELAY, "client", 100, 200, 300);
        histogram(1, HistogramRow.Kind.RESPONSE, "client", 2000);
        assertThat(points(Metric.GENERATOR_LATENESS_P99)).isEqualTo(Map.of(1, 300e-6));
        figure(2, Metric.GENERATOR_LATENESS_P99, "generator", 0.5);
        assertThat(points(Metric.GENERATOR_LATENESS_P99)).isEqualTo(Map.of(2, 0.5));
    }

    @Test
    void hopsAreMergedForTheCellAndStandOneByOneAsItsParts() {
        rest(1, 1);
        rest(2, 1);
        rest(3, 2);
        histogram(1, HistogramRow.Kind.HOP, "m1>m2", 100, 200);
        histogram(1, HistogramRow.Kind.HOP, "m2>m3", 600);
        histogram(2, HistogramRow.Kind.HOP, "m1>m2", 300);
        histogram(3, HistogramRow.Kind.HOP, "m1>m2", 1000);
        histogram(3, HistogramRow.Kind.RESPONSE, "client", 2000);
        assertThat(points(Metric.HOP_MEAN)).isEqualTo(Map.of(1, 300e-6, 2, 1000e-6));
        assertThat(points(Metric.HOP_MEDIAN)).isEqualTo(Map.of(1, 200e-6, 2, 1000e-6));
        assertThat(points(Metric.HOP_P99)).isEqualTo(Map.of(1, 600e-6, 2, 1000e-6));
        for (Metric metric : List.of(Metric.HOP_MEAN, Metric.HOP_MEDIAN, Metric.HOP_P99)) {
            assertThat(samples().bySubject(metric)).as(metric.key()).containsOnlyKeys("m1>m2", "m2>m3");
        }
        assertThat(points(samples().bySubject(Metric.HOP_MEAN).get("m1>m2"))).isEqualTo(Map.of(1, 200e-6, 2, 1000e-6));
        assertThat(points(samples().bySubject(Metric.HOP_P99).get("m2>m3"))).isEqualTo(Map.of(1, 600e-6));
    }
}
