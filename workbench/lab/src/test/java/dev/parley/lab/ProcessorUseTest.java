package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class ProcessorUseTest {
    private static final long SECOND = 1_000_000_000L;

    private static double figure(List<FigureRow> figures, Metric metric, String subject) {
        return figures.stream()
                .filter(f -> f.metric() == metric && f.subject().equals(subject))
                .findFirst()
                .orElseThrow()
                .value();
    }

    /** m1 used a core for a second, half of it to compile; m2 a quarter of one, and compiled nothing. */
    @Test
    void theShareOfAServiceLeavesItsCompilersOut() {
        Map<String, ProcessorUse> used = new TreeMap<>(Map.of(
                "m1",
                new ProcessorUse(3 * SECOND, SECOND).since(new ProcessorUse(2 * SECOND, SECOND / 2)),
                "m2",
                new ProcessorUse(SECOND / 4, 0)));
        List<FigureRow> figures = ProcessorUse.figures(1, used, SECOND, 100);
        assertThat(figure(figures, Metric.CPU_SHARE, "m1")).isEqualTo(50);
        assertThat(figure(figures, Metric.CPU_SHARE, "m2")).isEqualTo(25);
        assertThat(figure(figures, Metric.COMPILING_SHARE, FigureRow.SYSTEM)).isEqualTo(40);
        assertThat(figure(figures, Metric.CPU_PER_REQUEST, FigureRow.SYSTEM)).isEqualTo(7.5);
    }

    @Test
    void nothingIsToldPerRequestWhereNoneWasAnswered() {
        assertThat(ProcessorUse.figures(1, Map.of("m1", ProcessorUse.NONE), SECOND, 0))
                .extracting(FigureRow::metric)
                .containsExactly(Metric.CPU_SHARE, Metric.COMPILING_SHARE);
    }

    @Test
    void servicesThatUsedNoProcessorTimeCompiledNothing() {
        List<FigureRow> figures = ProcessorUse.figures(1, Map.of("m1", ProcessorUse.NONE), SECOND, 3);
        assertThat(figure(figures, Metric.COMPILING_SHARE, FigureRow.SYSTEM)).isZero();
    }

    @Test
    void whatTheSystemDoesNotTellOfOneServiceIsNoShareOfAll() {
        ProcessorUse untold = new ProcessorUse(SECOND, OptionalLong.empty());
        Map<String, ProcessorUse> used =
                Map.of("m1", new ProcessorUse(SECOND, 1), "m2", untold.since(ProcessorUse.NONE));
        assertThat(ProcessorUse.figures(1, used, SECOND, 3))
                .extracting(FigureRow::metric)
                .doesNotContain(Metric.COMPILING_SHARE)
                .contains(Metric.CPU_SHARE, Metric.CPU_PER_REQUEST);
    }
}
