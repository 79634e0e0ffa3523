package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class WarmthTest {
    private static TrialSpec spec(Load load) {
        return new TrialSpec(
                0,
                "rest",
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                load,
                1,
                1,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(2)),
                Duration.ofSeconds(1));
    }

    private static final TrialSpec CLOSED = spec(new Load.Closed(16));

    private static List<FigureRow> compiling(double percent) {
        return List.of(new FigureRow(0, Metric.COMPILING_SHARE, FigureRow.SYSTEM, percent));
    }

    /** A second a figure, each of so many replies that all took the same time. */
    private static List<SecondRow> seconds(int repliesEach, double... microseconds) {
        List<SecondRow> rows = new ArrayList<>();
        rows.add(new SecondRow(0, -1, repliesEach, 0, 0, 0, 0, times(repliesEach, 90_000)));
        for (double one : microseconds) {
            rows.add(new SecondRow(0, rows.size() - 1, repliesEach, 0, 0, 0, 0, times(repliesEach, one)));
        }
        return rows;
    }

    private static byte[] times(int replies, double microseconds) {
        long[] times = new long[replies];
        Arrays.fill(times, Math.round(microseconds * 1_000));
        return Encoded.of(times);
    }

    private static List<String> reasons(double percent) {
        return Warmth.reasons(CLOSED, seconds(500, 1_000, 1_000), compiling(percent));
    }

    @Test
    void compilersMayTakeATenth() {
        assertThat(reasons(0)).isEmpty();
        assertThat(reasons(10)).isEmpty();
        assertThat(reasons(10.01))
                .containsExactly("cold: compilers took 10.0 % of the services' processor time (at most 10 %)");
        assertThat(reasons(61))
                .containsExactly("cold: compilers took 61.0 % of the services' processor time (at most 10 %)");
    }

    @Test
    void whatIsNotKnownToBeWarmIsCold() {
        assertThat(Warmth.reasons(CLOSED, seconds(500, 1_000, 1_000), List.of()))
                .containsExactly("cold: how much processor time compilers took is not known");
        FigureRow ofOneService = new FigureRow(0, Metric.COMPILING_SHARE, "m1", 1);
        assertThat(Warmth.reasons(CLOSED, seconds(500, 1_000, 1_000), List.of(ofOneService)))
                .hasSize(1);
    }

    @Test
    void latencyThatFallsByMoreThanATenthFromHalfToHalfIsNotLevel() {
        assertThat(falling(1_000, 905)).isEmpty();
        assertThat(falling(1_000, 890))
                .containsExactly(
                        "cold: latency still fell, by 11 % from the window's first half to its second (at most 10 %)");
        // the second between two halves belongs to neither
        assertThat(falling(1_000, 10, 905)).isEmpty();
        assertThat(falling(1_000, 1_000, 800, 800)).hasSize(1);
        assertThat(falling(1_000, 950, 910, 905)).as("medians 950 and 905").isEmpty();
    }

    /** The median of values of which each second has the same number is the lower middle one of the seconds. */
    private static List<String> falling(double... microseconds) {
        return Warmth.reasons(CLOSED, seconds(500, microseconds), compiling(1));
    }

    @Test
    void latencyThatRisesIsThatOfAnOverloadAndNotCold() {
        assertThat(falling(1_000, 5_000)).isEmpty();
    }

    @Test
    void fewRequestsTellNoFall() {
        assertThat(Warmth.reasons(CLOSED, seconds(399, 1_000, 500), compiling(1)))
                .isEmpty();
        assertThat(Warmth.reasons(CLOSED, seconds(400, 1_000, 500), compiling(1)))
                .hasSize(1);
        assertThat(Warmth.reasons(CLOSED, seconds(5_000, 1_000), compiling(1)))
                .as("one second has no halves")
                .isEmpty();
        assertThat(Warmth.reasons(CLOSED, List.of(), compiling(1))).isEmpty();
    }

    @Test
    void aLoadThatChangesHasNoLevelToBeOn() {
        TrialSpec stairs = spec(new Load.Staircase(40, 80, 40, Duration.ofSeconds(1)));
        assertThat(Warmth.reasons(stairs, seconds(500, 1_000, 500), compiling(1)))
                .isEmpty();
        assertThat(Warmth.reasons(stairs, seconds(500, 1_000, 500), compiling(11)))
                .hasSize(1);
        TrialSpec open = spec(new Load.Open(500, Load.Arrivals.EVEN));
        assertThat(Warmth.reasons(open, seconds(500, 1_000, 500), compiling(1))).hasSize(1);
    }
}
