package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Analysis;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Point;
import dev.parley.report.Chart.Row;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChartTest {
    private static Chart chart(Kind kind, double... values) {
        List<Point> points = DoubleStream.of(values)
                .mapToObj(value -> Point.of("t" + value, value, value, value, ""))
                .toList();
        return new Chart("id", kind, "Heading", "Time (ms)", "", List.of(new Row("text:10", points)));
    }

    @Test
    void chartsSideBySideShareTheKindOfTheirAxis() {
        List<Chart> alike = Chart.alike(List.of(chart(Kind.INTERVALS, 1, 2), chart(Kind.INTERVALS, 1, 31)));
        assertThat(alike).extracting(Chart::isWide).containsExactly(true, true);
        assertThat(alike).extracting(Chart::drawnAxis).containsOnly("Time (ms), logarithmic");
        assertThat(Chart.alike(List.of(chart(Kind.INTERVALS, 1, 2), chart(Kind.INTERVALS, 3, 30))))
                .extracting(Chart::drawnAxis)
                .containsOnly("Time (ms)");
        assertThat(Chart.alike(List.of(chart(Kind.INTERVALS, 1, 31), chart(Kind.LINES, 1, 2))))
                .as("those of another kind do not matter")
                .extracting(Chart::isWide)
                .containsExactly(true, false);
    }

    @Test
    void whatIsNothingHasNoPlaceOnALogarithmicAxis() {
        assertThat(Chart.alike(List.of(chart(Kind.INTERVALS, 1, 31), chart(Kind.INTERVALS, 0, 2))))
                .extracting(Chart::isWide)
                .containsOnly(false);
    }

    @Test
    void barsOfPartsShowSharesAndSingleBarsTheirLength() {
        assertThat(Chart.alike(List.of(chart(Kind.STACK, 1, 31))).getFirst().drawnAxis())
                .isEqualTo("Share of the message's largest (%)");
        assertThat(Chart.alike(List.of(chart(Kind.HOPS, 1, 31))).getFirst().drawnAxis())
                .isEqualTo("Share of its own response time (%)");
        assertThat(Chart.alike(List.of(chart(Kind.BARS, 1, 31))).getFirst().drawnAxis())
                .isEqualTo("Time (ms)");
    }

    /** The memory after a load whose trials are void is the highest, and is not the technology's. */
    @Test
    void whatOneServiceTakesIsTheHighestOfWhatCounts(@TempDir Path folder) {
        try (RunStore store = RunStore.open(SampleStore.voidUnder(new Load.Closed(16), folder))) {
            Point rest = new Charts(Analysis.of(store))
                    .sections().stream()
                            .flatMap(section -> section.charts().stream())
                            .filter(chart -> chart.id().equals(Metric.MEMORY_AFTER_LOAD.key()))
                            .flatMap(chart -> chart.rows().getFirst().points().stream())
                            .filter(point -> point.technology().equals("rest"))
                            .findFirst()
                            .orElseThrow();
            assertThat(rest.flag()).isEqualTo("indicative: 3 restarts");
        }
    }

    @Test
    void figuresHaveTheirUnitInTheTableAndTheirColumnsInTheFile() {
        ChartTable figures = new ChartTable(chart(Kind.INTERVALS, 1.23456789));
        assertThat(figures.table().head())
                .containsExactly("message", "technology", "value (ms)", "low (ms)", "high (ms)", "validity");
        assertThat(figures.table().rows())
                .containsExactly(List.of("text:10", "t1.23456789", "1.23", "1.23", "1.23", "valid"));
        assertThat(figures.csv())
                .isEqualTo("message,technology,value,low,high,validity\n"
                        + "text:10,t1.23456789,1.23457,1.23457,1.23457,valid\n");
    }
}
