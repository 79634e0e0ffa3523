package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
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
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class WarmthTest {
    private static TrialSpec spec(Load load) {
        return spec(load, new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(2)));
    }

    private static TrialSpec spec(Load load, TrialSpec.Window window) {
        return new TrialSpec(
                0,
                "rest",
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                load,
                1,
                1,
                window,
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

    private static List<String> reasons(TrialSpec spec, List<SecondRow> seconds, List<FigureRow> figures) {
        return Warmth.reasons(spec, seconds, List.of(), figures);
    }

    private static List<String> reasons(double percent) {
        return reasons(CLOSED, seconds(500, 1_000, 1_000), compiling(percent));
    }

    /** The halves of a window, each with its response times. */
    private static List<String> halves(long[] firstNs, long[] secondNs) {
        return Warmth.reasons(
                CLOSED,
                seconds(firstNs.length + secondNs.length, 1_000),
                List.of(
                        new HistogramRow(0, HistogramRow.Kind.FIRST_HALF, "client", Encoded.of(firstNs)),
                        new HistogramRow(0, HistogramRow.Kind.SECOND_HALF, "client", Encoded.of(secondNs))),
                compiling(1));
    }

    /** Response times that lie evenly within a tenth below and above their median. */
    private static long[] around(int replies, long medianNs) {
        return LongStream.range(0, replies)
                .map(i -> medianNs * 9 / 10 + medianNs / 5 * i / Math.max(1, replies - 1))
                .toArray();
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

    /** Of gRPC, a late step of the compilers, and of one client of RPCX, whose first half was disturbed. */
    @Test
    void aWindowThatEndsWhereTheRehearsalEndedIsLevel() {
        List<FigureRow> figures = new ArrayList<>(compiling(3));
        figures.add(new FigureRow(0, Metric.REHEARSED_MEDIAN, FigureRow.SYSTEM, 1));
        assertThat(reasons(CLOSED, seconds(500, 1_200, 900), figures)).isEmpty();
        assertThat(reasons(CLOSED, seconds(500, 1_200, 890), figures))
                .containsExactly(
                        "cold: latency still fell, by 26 % from the window's first half to its second (at most 10 %)");
        assertThat(reasons(CLOSED, seconds(500, 900, 850), figures))
                .as("fell by less within the window")
                .isEmpty();
        assertThat(reasons(CLOSED, seconds(40, 1_200, 1_000), figures))
                .as("few requests, which end no lower")
                .isEmpty();
        assertThat(reasons(CLOSED, seconds(7, 1_200, 1_000), figures))
                .as("too few for an interval of their median")
                .containsExactly(
                        "unknown: 7 and 7 requests in the halves of the window do not tell whether latency still fell");
    }

    /** A generator that compiles takes the processor from the services that it measures. */
    @Test
    void theGeneratorsCompilersMayTakeATenthOfACoreUnderASteadyLoad() {
        List<FigureRow> figures = new ArrayList<>(compiling(3));
        figures.add(new FigureRow(0, Metric.GENERATOR_COMPILING, "generator", 10));
        assertThat(reasons(CLOSED, seconds(500, 1_000, 1_000), figures)).isEmpty();
        figures.set(1, new FigureRow(0, Metric.GENERATOR_COMPILING, "generator", 10.1));
        assertThat(reasons(CLOSED, seconds(500, 1_000, 1_000), figures))
                .containsExactly("cold: the load generator's compilers took 10.1 % of a core (at most 10 %)");
        assertThat(reasons(spec(Load.parse("burst:100:10")), seconds(500, 1_000, 1_000), figures))
                .isEmpty();
    }

    @Test
    void whatNothingShowsToBeWarmIsUnknownAndNeverWarm() {
        assertThat(reasons(CLOSED, seconds(500, 1_000, 1_000), List.of()))
                .containsExactly("unknown: how much processor time compilers took was not seen");
        FigureRow ofOneService = new FigureRow(0, Metric.COMPILING_SHARE, "m1", 1);
        assertThat(reasons(CLOSED, seconds(500, 1_000, 1_000), List.of(ofOneService)))
                .hasSize(1);
    }

    /** A second has halves too: they are kept by the nanosecond, and not by whole seconds. */
    @Test
    void aWindowOfASecondIsJudgedByItsHalves() {
        assertThat(halves(around(500, 1_000_000), around(500, 800_000)))
                .containsExactly(
                        "cold: latency still fell, by 20 % from the window's first half to its second (at most 10 %)");
        assertThat(halves(around(500, 1_000_000), around(500, 1_000_000))).isEmpty();
    }

    @Test
    void aWindowWithoutHalvesIsUnknown() {
        assertThat(reasons(CLOSED, seconds(5_000, 1_000), compiling(1)))
                .containsExactly(
                        "unknown: the window was not kept in halves, so that nothing tells whether latency still fell");
        assertThat(reasons(CLOSED, List.of(), compiling(1))).hasSize(1);
        assertThat(halves(new long[0], new long[0])).as("nothing was answered").hasSize(1);
    }

    @Test
    void fewRequestsDecideWhereTheirMediansAreSureAndAreUnknownOtherwise() {
        assertThat(halves(around(40, 1_000_000), around(40, 1_000_000)))
                .as("both medians are known to a few percent")
                .isEmpty();
        assertThat(halves(around(40, 1_000_000), around(40, 500_000)))
                .containsExactly(
                        "cold: latency still fell, by 50 % from the window's first half to its second (at most 10 %)");
        assertThat(halves(around(40, 1_000_000), around(40, 900_000)))
                .containsExactly(
                        "unknown: 40 and 40 requests in the halves of the window do not tell whether latency still"
                                + " fell");
        long[] scattered = LongStream.rangeClosed(1, 40).map(i -> i * 50_000).toArray();
        assertThat(halves(scattered, scattered))
                .as("medians known to a third")
                .hasSize(1)
                .first(STRING)
                .startsWith("unknown: ");
        assertThat(halves(around(7, 1_000_000), around(7, 1_000_000)))
                .as("no interval of a median has seven values")
                .containsExactly(
                        "unknown: 7 and 7 requests in the halves of the window do not tell whether latency still fell");
        assertThat(halves(around(8, 1_000_000), around(8, 1_000_000))).hasSize(1);
        assertThat(halves(new long[0], around(500, 1_000_000)))
                .as("nothing came in the first half")
                .hasSize(1);
    }

    @Test
    void theNumberOfRequestsDecidesWhetherMediansAloneTell() {
        long[] scattered = LongStream.rangeClosed(1, 400).map(i -> i * 5_000).toArray();
        assertThat(halves(scattered, scattered)).isEmpty();
        long[] fewer = Arrays.copyOf(scattered, 399);
        assertThat(halves(fewer, fewer)).hasSize(1);
        assertThat(halves(fewer, scattered)).hasSize(1);
        assertThat(halves(scattered, fewer)).hasSize(1);
    }

    /** The paper asks how the first calls after a start are: as many for each, and none rehearsed. */
    @Test
    void aColdStartThatWasAskedForIsNoFault() {
        TrialSpec.Window unwarmed = new TrialSpec.Window(Duration.ZERO, Duration.ZERO, Duration.ofSeconds(1));
        TrialSpec rounds = spec(Load.parse("rounds:10x10:10:600s:shared"), unwarmed);
        List<FigureRow> unrehearsed = List.of(
                new FigureRow(0, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 60),
                new FigureRow(0, Metric.REHEARSAL_TIME, FigureRow.SYSTEM, 0));
        assertThat(reasons(rounds, List.of(), unrehearsed)).isEmpty();
        assertThat(Warmth.isColdStart(rounds, unrehearsed)).isTrue();
        assertThat(reasons(spec(new Load.Closed(16), unwarmed), seconds(500, 1, 1), unrehearsed))
                .as("in a window the fastest answers most")
                .hasSize(1);
        assertThat(reasons(spec(Load.parse("rounds:10x10:10:600s:shared")), List.of(), unrehearsed))
                .as("warmed up")
                .hasSize(1);
        List<FigureRow> rehearsed = List.of(
                new FigureRow(0, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 60),
                new FigureRow(0, Metric.REHEARSAL_TIME, FigureRow.SYSTEM, 0.4));
        assertThat(reasons(rounds, List.of(), rehearsed)).hasSize(1);
        assertThat(reasons(rounds, List.of(), unrehearsed.subList(0, 1)))
                .as("of an older run it is not known how long services were rehearsed")
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
        return reasons(CLOSED, seconds(500, microseconds), compiling(1));
    }

    @Test
    void latencyThatRisesIsThatOfAnOverloadAndNotCold() {
        assertThat(falling(1_000, 5_000)).isEmpty();
    }

    @Test
    void aLoadThatChangesHasNoLevelToBeOn() {
        TrialSpec stairs = spec(new Load.Staircase(40, 80, 40, Duration.ofSeconds(1)));
        assertThat(reasons(stairs, seconds(500, 1_000, 500), compiling(1))).isEmpty();
        assertThat(reasons(stairs, seconds(500, 1_000, 500), compiling(11))).hasSize(1);
        TrialSpec open = spec(new Load.Open(500, Load.Arrivals.EVEN));
        assertThat(reasons(open, seconds(500, 1_000, 500), compiling(1))).hasSize(1);
    }

    /** So many values of half a millisecond or of one, ascending, and the rest of the other. */
    private static long[] steps(int first, long firstNs, int second, long secondNs) {
        return LongStream.concat(
                        LongStream.generate(() -> firstNs).limit(first),
                        LongStream.generate(() -> secondNs).limit(second))
                .toArray();
    }

    /** The median of forty lies between the values of ranks 13 and 28: 20 ∓ 0.98 √40, outwards, and one more above. */
    @Test
    void theIntervalOfAMedianEndsAtItsRanks() {
        long half = 500_000;
        long one = 1_000_000;
        long[] level = steps(40, one, 0, one);
        long[] fast = steps(40, half, 0, half);
        assertThat(halves(steps(28, one, 12, 2 * one), level))
                .as("upper end of the first")
                .isEmpty();
        assertThat(halves(steps(27, one, 13, 2 * one), level)).first(STRING).startsWith("unknown: 40 and 40");
        assertThat(halves(level, steps(12, half, 28, one)))
                .as("lower end of the second")
                .isEmpty();
        assertThat(halves(level, steps(13, half, 27, one))).first(STRING).startsWith("unknown: 40 and 40");
        assertThat(halves(steps(12, half, 28, one), fast))
                .first(STRING)
                .startsWith("cold: latency still fell, by 50 %");
        assertThat(halves(steps(13, half, 27, one), fast)).first(STRING).startsWith("unknown: 40 and 40");
        assertThat(halves(level, steps(28, half, 12, one)))
                .first(STRING)
                .startsWith("cold: latency still fell, by 50 %");
        assertThat(halves(level, steps(27, half, 13, one))).first(STRING).startsWith("unknown: 40 and 40");
    }

    /** Of eight values the first and the last are the ends of that interval. */
    @Test
    void eightRequestsAreTheFewestThatTell() {
        assertThat(halves(steps(8, 1_000_000, 0, 0), steps(8, 1_000_000, 0, 0))).isEmpty();
        assertThat(halves(steps(7, 1_000_000, 0, 0), steps(7, 1_000_000, 0, 0))).hasSize(1);
    }

    @Test
    void aMedianMayFallByATenth() {
        assertThat(Warmth.falls(1_000, 900)).isFalse();
        assertThat(Warmth.falls(1_000, 899.9)).isTrue();
        assertThat(Warmth.falls(Double.NaN, 1)).as("there was none before").isFalse();
        assertThat(Warmth.falls(0, 0)).isFalse();
    }

    /** Figures of single services stand beside that of all, and of several the highest counts. */
    @Test
    void theShareOfCompilersIsThatOfAllServices() {
        FigureRow service = new FigureRow(0, Metric.COMPILING_SHARE, "m1", 70);
        FigureRow other = new FigureRow(0, Metric.CPU_SHARE, FigureRow.SYSTEM, 80);
        assertThat(Warmth.compilingShare(List.of(service, other))).isEmpty();
        assertThat(Warmth.compilingShare(
                        List.of(service, other, new FigureRow(0, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 4))))
                .hasValue(4);
    }
}
