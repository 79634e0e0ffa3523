package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Analysis;
import dev.parley.model.Metric;
import dev.parley.report.Chart.Point;
import dev.parley.store.RunStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StepChartsTest {
    @TempDir
    static Path folder;

    private static Report report;
    private static Charts.Section section;

    @BeforeAll
    static void read() {
        Path file = SampleStore.loads(folder);
        report = Report.of(file);
        report.writeTo(folder);
        try (RunStore store = RunStore.open(file)) {
            section = new StepCharts(Analysis.of(store)).section();
        }
    }

    @Test
    void aStaircaseIsDrawnOverItsClients() {
        assertThat(line("Throughput by clients"))
                .containsExactly(
                        List.of(10.0, 100.0), List.of(20.0, 200.0), List.of(30.0, 300.0), List.of(40.0, 400.0));
        assertThat(line("Mean response time by clients")).hasSize(4).endsWith(List.of(40.0, 4.0));
    }

    @Test
    void stepsOfRatesAreDrawnOverTheirRates() throws Exception {
        Path file = SampleStore.rates(Files.createDirectory(folder.resolve("rates")));
        try (RunStore store = RunStore.open(file)) {
            Charts.Section rates = new StepCharts(Analysis.of(store)).section();
            assertThat(line(rates, "Throughput by rate"))
                    .containsExactly(List.of(100.0, 90.0), List.of(200.0, 180.0), List.of(300.0, 270.0));
            assertThat(line(rates, "Mean response time by rate")).hasSize(3).endsWith(List.of(300.0, 3.0));
        }
        assertThat(Report.of(file).table().lines().map(line -> line.strip().replaceAll(" +", " ")))
                .containsSequence(
                        "Best throughput (1/s) Rate at the best (1/s) Rate when it gave out (1/s)",
                        "rest 270 300 none",
                        "graphql 270 300 none");
    }

    @Test
    void voidAndColdTrialsDoNotShowThatNoStepGaveOut() throws Exception {
        Path file = SampleStore.ratesOfNothingThatCounts(Files.createDirectory(folder.resolve("uncounted")));
        assertThat(Report.of(file).table().lines().map(line -> line.strip().replaceAll(" +", " ")))
                .contains("! rest 270 300 –", "~ graphql cold cold –", "grpc 270 300 none");
        try (RunStore store = RunStore.open(file)) {
            Analysis analysis = Analysis.of(store);
            var situation = analysis.situations().getFirst();
            assertThat(LoadFigures.absence(analysis, situation, "grpc", Metric.RATE_AT_LIMIT))
                    .contains("none: no step gave out");
            assertThat(LoadFigures.absence(analysis, situation, "rest", Metric.RATE_AT_LIMIT))
                    .isEmpty();
            assertThat(LoadFigures.absence(analysis, situation, "graphql", Metric.RATE_AT_LIMIT))
                    .isEmpty();
        }
    }

    @Test
    void aSearchIsDrawnOverTheRatesItTriedWhateverTheirOrder() {
        assertThat(line("99th percentile by rate"))
                .containsExactly(List.of(100.0, 2.0), List.of(282.8, 4.0), List.of(800.0, 90.0));
    }

    @Test
    void burstsAreDrawnOneAfterTheOther() {
        assertThat(line("Time of each burst"))
                .containsExactly(List.of(1.0, 21.0), List.of(2.0, 22.0), List.of(3.0, 23.0));
    }

    @Test
    void cellsOfAGridThatDifferInThreadsMakeOneLine() {
        assertThat(line("Throughput by threads")).extracting(p -> p.getFirst()).containsExactly(10.0, 100.0);
        assertThat(chart("Throughput by threads").note()).contains("100 requests a round, 3 rounds, client shared");
    }

    @Test
    void theTableHasWhatEachLoadIsFor() {
        assertThat(report.table().lines().map(line -> line.strip().replaceAll(" +", " ")))
                .containsSequence(
                        "Best throughput (1/s) Clients at the best Clients when it gave out",
                        "rest 400 40.0 none",
                        "graphql 400 40.0 30.0")
                .containsSequence("Highest rate within the latency (1/s)", "rest 283", "graphql at least 800")
                .containsSequence(
                        "Mean scenario (ms) Users at the first failure", "rest 5.50 none", "graphql 5.50 none")
                .containsSequence("All done in (s)", "rest 1.50", "graphql 1.50");
    }

    /** Five columns and a long name are wider than a terminal: there are two tables then. */
    @Test
    void aStaircaseOfAScenarioHasATableThatFits() throws Exception {
        String table = Report.of(SampleStore.scenario(Files.createDirectory(folder.resolve("scenario"))))
                .table();
        assertThat(table.lines()).allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(100));
        assertThat(table.lines().map(line -> line.strip().replaceAll(" +", " ")))
                .containsSequence(
                        "Best throughput (1/s) Clients at the best Clients when it gave out",
                        "rest 400 40.0 none",
                        "grpc-tuned-for-… 400 40.0 none",
                        "Mean scenario (ms) p99 scenario (ms)",
                        "rest 5.50 9.50",
                        "grpc-tuned-for-… 5.50 9.50");
    }

    /** A mean over tries at 100, 800 and 283 requests a second is the latency at none of these rates. */
    @Test
    void noLatencyOfAllTriesStandsBesideTheRateThatASearchFound() {
        List<String> lines = report.table().lines().toList();
        int search = lines.indexOf("line:2 · text:10 · highest rate with p99 ≤ 50ms (open load, poisson)");
        assertThat(lines.get(search + 1).strip().replaceAll(" +", " "))
                .isEqualTo("B out B back CPU ms mem MB size MB boot ms");
        int users = lines.indexOf("line:2 · text:10 · 300 new users/s for 4s, 2 times each (open load, even)");
        assertThat(lines.get(users + 1)).contains("mean ms", "p99 ms");
    }

    @Test
    void thePageHasItToo() throws Exception {
        assertThat(Files.readString(folder.resolve(Report.HTML)))
                .contains("<b>at least 800</b>", "<b>283</b>")
                .contains("<a href=\"#steps\">Step by step</a>", "<section id=\"steps\">")
                .contains(
                        "<b>none: no step gave out</b>",
                        "<th scope=\"col\">Highest rate within the latency (1/s)</th>");
    }

    @Test
    void whereNoLoadHasStepsNothingIsSaidOfThem() throws Exception {
        Path plain = Files.createDirectory(folder.resolve("plain"));
        Report other = Report.of(SampleStore.compare(plain, 2));
        other.writeTo(plain);
        assertThat(Files.readString(plain.resolve(Report.HTML))).doesNotContain("id=\"steps\"", "#steps");
        assertThat(other.table()).doesNotContain("none");
    }

    private static Chart chart(String heading) {
        return chart(section, heading);
    }

    private static Chart chart(Charts.Section of, String heading) {
        return of.charts().stream()
                .filter(chart -> chart.heading().equals(heading))
                .findFirst()
                .orElseThrow();
    }

    /** The first technology's. */
    private static List<List<Double>> line(String heading) {
        return line(section, heading);
    }

    private static List<List<Double>> line(Charts.Section of, String heading) {
        Point point = chart(of, heading).rows().getFirst().points().getFirst();
        return point.tail().stream().map(p -> List.of(p[0], p[1])).toList();
    }
}
