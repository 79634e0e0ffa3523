package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Situation;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.report.ResultTable.Field;
import dev.parley.report.ResultTable.Remark;
import dev.parley.report.ResultTable.Row;
import dev.parley.store.RunStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResultTableTest {
    @TempDir
    static Path folder;

    private static Analysis well;
    private static Analysis troubled;

    @BeforeAll
    static void read() throws Exception {
        well = analysis(SampleStore.compare(Files.createDirectory(folder.resolve("well")), 5));
        troubled = analysis(SampleStore.troubled(Files.createDirectory(folder.resolve("troubled"))));
    }

    private static Analysis analysis(Path file) {
        try (RunStore store = RunStore.open(file)) {
            return Analysis.of(store);
        }
    }

    private static ResultTable table(Analysis analysis, String message, Load load) {
        List<String> names =
                analysis.run().technologies().stream().map(Technology::name).toList();
        return ResultTable.of(analysis, new Situation("line:5", message, load), Analysis.COMPARED, Palette.of(names));
    }

    private static Row row(ResultTable table, String technology) {
        return table.rows().stream()
                .filter(row -> row.mark().technology().equals(technology))
                .findFirst()
                .orElseThrow();
    }

    private static Field cell(Row row, Metric metric) {
        return row.fields().stream()
                .filter(cell -> cell.column().equals(metric.heading()))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void theBestStandsFirst() {
        for (Situation situation : well.situations()) {
            List<Double> medians = table(well, situation.message(), situation.load()).rows().stream()
                    .map(row -> well.summary(row.mark().technology(), situation, Metric.LATENCY_MEDIAN)
                            .orElseThrow()
                            .estimate()
                            .value())
                    .toList();
            assertThat(medians).hasSize(3).isSorted();
        }
    }

    @Test
    void whatIsVoidStandsLastWithItsReasonInTheRow() {
        ResultTable table = table(troubled, "text:10", new Load.Closed(16));
        assertThat(table.rows())
                .extracting(row -> !row.note().isEmpty())
                .as("those that do not count stand below the others")
                .isSorted()
                .contains(true, false);
        assertThat(row(table, "rabbitmq").note().words()).startsWith("void: a core of the generator was ");
        assertThat(row(table, "rabbitmq").note().kind()).isEqualTo("bad");
        assertThat(row(table, "rabbitmq").fields())
                .allSatisfy(cell -> assertThat(cell.remarks())
                        .extracting(Remark::words)
                        .contains("void")
                        .noneMatch(words -> words.contains("×")));
        assertThat(row(table, "rest").note()).isEqualTo(Remark.NONE);
    }

    @Test
    void aRatioHasTwoDigitsAndStandsOnlyWhereItIsDecided() {
        List<String> words = well.situations().stream()
                .flatMap(situation -> table(well, situation.message(), situation.load()).rows().stream())
                .flatMap(row -> row.fields().stream())
                .flatMap(cell -> cell.remarks().stream())
                .map(Remark::words)
                .toList();
        assertThat(words).anyMatch(word -> word.matches("\\d\\.\\d × worse"));
        assertThat(words)
                .allMatch(
                        word -> word.matches("(\\d\\.\\d|\\d\\d|0\\.\\d\\d) × (worse|better)|equivalent|lowest|highest"
                                + "|undecided, about .+ would decide"));
    }

    @Test
    void underThreeRestartsNoNumberOfFurtherOnesIsPromised() {
        assertThat(cell(row(table(troubled, "text:10", new Load.Closed(16)), "kafka"), Metric.THROUGHPUT)
                        .remarks())
                .extracting(Remark::words)
                .noneMatch(words -> words.contains("more restart"));
        assertThat(table(troubled, "text:10", new Load.Closed(16)).hasRatio()).isFalse();
    }

    @Test
    void aPercentileOfTooFewSamplesSaysSo() {
        Row row = row(table(troubled, "text:1000000", new Load.Closed(16)), "rest");
        assertThat(cell(row, Metric.LATENCY_P99).remarks())
                .extracting(Remark::words)
                .anyMatch(words -> words.matches("\\d+ samples of 1000"));
        assertThat(cell(row, Metric.LATENCY_MEDIAN).remarks())
                .extracting(Remark::words)
                .noneMatch(words -> words.contains("samples"));
    }

    @Test
    void theThroughputOfAnOpenLoadIsWhatWasOffered() {
        ResultTable table = table(troubled, "text:10", new Load.Open(300, Load.Arrivals.POISSON));
        assertThat(table.rows())
                .flatExtracting(row -> cell(row, Metric.THROUGHPUT).remarks())
                .extracting(Remark::words)
                .contains("as offered")
                .doesNotContain("highest")
                .noneMatch(words -> words.startsWith("undecided"));
        assertThat(table(troubled, "text:10", new Load.Closed(16)).rows())
                .flatExtracting(row -> cell(row, Metric.THROUGHPUT).remarks())
                .extracting(Remark::words)
                .contains("highest");
    }
}
