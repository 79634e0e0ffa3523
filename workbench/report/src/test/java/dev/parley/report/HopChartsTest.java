package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.analysis.Analysis;
import dev.parley.report.Chart.Kind;
import dev.parley.report.Chart.Part;
import dev.parley.report.Chart.Point;
import dev.parley.store.RunStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HopChartsTest {
    @TempDir
    Path folder;

    @Test
    void theHopsOfALineAddUpToTheResponseTime() {
        Charts.Section section = section("line:5");

        assertThat(points(section, Kind.HOPS)).hasSize(2).allSatisfy(point -> {
            assertThat(point.parts())
                    .extracting(Part::label)
                    .containsExactly("client→m1", "m1→m2", "m2→m3", "m3→m4", "m4→m5");
            assertThat(point.parts().stream().mapToDouble(Part::value).sum()).isCloseTo(point.value(), within(1e-9));
            assertThat(point.parts())
                    .allSatisfy(part -> assertThat(part.value()).isPositive());
        });
    }

    @Test
    void aLineShowsTimeAgainstTheNumberOfHops() {
        List<Point> points = points(section("line:4"), Kind.LINES);

        assertThat(points).as("median and 99th percentile of two technologies").hasSize(4);
        assertThat(points).allSatisfy(point -> {
            assertThat(point.tail()).extracting(p -> p[0]).containsExactly(1.0, 2.0, 3.0, 4.0);
            assertThat(point.tail()).extracting(p -> p[1]).isSorted();
        });
    }

    /** The order in which services are written is not that of the calls, and a service may be called by nobody. */
    @Test
    void theNumberOfHopsIsThatOfTheCalls() throws IOException {
        assertThat(points(section("graph:a>b;d>e;b>c;c>d"), Kind.LINES))
                .hasSize(4)
                .allSatisfy(point ->
                        assertThat(point.tail()).extracting(p -> p[0]).containsExactly(1.0, 2.0, 3.0, 4.0, 5.0));
        assertThat(points(section("graph:a>b;c>d", Files.createDirectory(folder.resolve("apart"))), Kind.LINES))
                .isEmpty();
    }

    /** The page's script finds what it draws by the id of a chart. */
    @Test
    void callsAtOnceAndCallsOneAfterTheOtherAreDrawnApart() throws IOException {
        List<String> inTurn = ids(section("graph:a>b,c", Files.createDirectory(folder.resolve("in-turn"))));
        List<String> atOnce = ids(section("graph:a>b&c", Files.createDirectory(folder.resolve("at-once"))));
        assertThat(inTurn).isNotEmpty().doesNotContainAnyElementsOf(atOnce);
    }

    private static List<String> ids(Charts.Section section) {
        return section.charts().stream().map(Chart::id).toList();
    }

    @Test
    void ofNeighboursAskedAtOnceTheSlowestCounts() {
        Charts.Section section = section("star:4");

        assertThat(points(section, Kind.HOPS)).allSatisfy(point -> {
            assertThat(point.parts()).hasSize(2);
            assertThat(point.parts().stream().mapToDouble(Part::value).sum()).isCloseTo(point.value(), within(1e-9));
        });
        assertThat(section.charts().getFirst().note()).contains("asked at once: the one with the longest mean");
        assertThat(points(section, Kind.LINES))
                .hasSize(2)
                .allSatisfy(
                        point -> assertThat(point.tail()).extracting(p -> p[0]).containsExactly(1.0, 3.0));
    }

    @Test
    void aTreeCallsOneAfterTheOther() {
        Charts.Section section = section("tree");

        assertThat(points(section, Kind.HOPS))
                .allSatisfy(point -> assertThat(point.parts())
                        .extracting(Part::label)
                        .containsExactly("client→m1", "m1→m2", "m2→m4", "m2→m5", "m1→m3", "m3→m5", "m3→m6"));
        assertThat(points(section, Kind.LINES)).as("fan-out of the gateway").hasSize(2);
    }

    @Test
    void oneServiceHasNoHopsAndThePageSaysSo() {
        Charts.Section section = section("line:1");

        assertThat(section.charts()).isEmpty();
        assertThat(section.lead()).contains("one service that calls no other");
    }

    private Charts.Section section(String topology) {
        return section(topology, folder);
    }

    private static Charts.Section section(String topology, Path folder) {
        try (RunStore store = RunStore.open(SampleStore.of(topology, folder))) {
            return new HopCharts(Analysis.of(store)).section();
        }
    }

    private static List<Point> points(Charts.Section section, Kind kind) {
        return section.charts().stream()
                .filter(chart -> chart.kind() == kind)
                .flatMap(chart -> chart.rows().stream())
                .flatMap(row -> row.points().stream())
                .toList();
    }
}
