package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * A window's figures against arithmetic on paper. Times under 2 048 ns are kept exactly by a histogram of three digits.
 */
class TrialWindowTest {
    private static final TrialSpec SPEC = new TrialSpec(
            1,
            "rest",
            Topology.parse("line:2"),
            "messages",
            MessageSpec.parse("text:10"),
            new Load.Closed(1),
            1,
            1,
            new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofSeconds(4)),
            Duration.ofSeconds(1));

    private static final SecondRow WARM_UP = new SecondRow(1, -1, 1, 0, 0, 0, 0, Encoded.of(2000));
    /** Due: 3 replied + 1 late + 2 wrong + 5 failed + 9 not sent = 20. */
    private static final SecondRow FIRST = new SecondRow(1, 0, 3, 1, 2, 5, 9, Encoded.of(100, 100, 400));

    private static final SecondRow SECOND = new SecondRow(1, 1, 2, 0, 0, 0, 0, Encoded.of(100, 900));

    private static TrialWindow of(OptionalDouble ownSeconds, SecondRow... rows) {
        return new TrialWindow(SPEC, List.of(rows), ownSeconds);
    }

    @Test
    void figuresAreThoseOfAllSecondsTogether() {
        Map<Metric, Double> figures =
                of(OptionalDouble.empty(), WARM_UP, FIRST, SECOND).asMeasured();
        // 100, 100, 100, 400, 900: the sum is 1 600
        assertThat(figures.get(Metric.LATENCY_MEAN)).isCloseTo(320e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_MEDIAN)).isCloseTo(100e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_MIN)).isCloseTo(100e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_MAX)).isCloseTo(900e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_P95)).isCloseTo(900e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_P99)).isCloseTo(900e-6, within(1e-12));
        assertThat(figures.get(Metric.LATENCY_P999)).isCloseTo(900e-6, within(1e-12));
        // five replies in the four seconds that were asked for, of 22 that were due
        assertThat(figures.get(Metric.THROUGHPUT)).isEqualTo(1.25);
        assertThat(figures.get(Metric.SUCCESS_SHARE)).isEqualTo(500.0 / 22);
        assertThat(figures).hasSize(9);
    }

    /**
     * Ranks 950, 990 and 999 of a thousand, each a time of its own: none of the percentiles can stand in for another.
     */
    @Test
    void percentilesAreToldApart() {
        long[] times = new long[1000];
        for (int i = 0; i < times.length; i++) {
            times[i] = i + 1;
        }
        Map<Metric, Double> figures = of(
                        OptionalDouble.empty(), new SecondRow(1, 0, 1000, 0, 0, 0, 0, Encoded.of(times)))
                .asMeasured();
        assertThat(figures.get(Metric.LATENCY_MIN)).isEqualTo(1e-6);
        assertThat(figures.get(Metric.LATENCY_MEDIAN)).isEqualTo(500e-6);
        assertThat(figures.get(Metric.LATENCY_P95)).isEqualTo(950e-6);
        assertThat(figures.get(Metric.LATENCY_P99)).isEqualTo(990e-6);
        assertThat(figures.get(Metric.LATENCY_P999)).isEqualTo(999e-6);
        assertThat(figures.get(Metric.LATENCY_MAX)).isEqualTo(1000e-6);
    }

    @Test
    void aRateIsACountOverTheWindowsOwnTimeWhereThatIsKnown() {
        TrialWindow window = of(OptionalDouble.of(2.5), WARM_UP, FIRST, SECOND);
        assertThat(window.windowSeconds()).isEqualTo(2.5);
        assertThat(window.asMeasured().get(Metric.THROUGHPUT)).isEqualTo(2);
        assertThat(of(OptionalDouble.empty(), FIRST).windowSeconds()).isEqualTo(4);
    }

    @Test
    void countsLeaveTheWarmUpOut() {
        TrialWindow window = of(OptionalDouble.empty(), WARM_UP, FIRST, SECOND);
        assertThat(window.samples()).isEqualTo(5);
        // right, late and wrong ones: 3 + 1 + 2 and 2
        assertThat(window.answered()).isEqualTo(8);
        assertThat(window.isEmpty()).isFalse();
        assertThat(of(OptionalDouble.empty(), WARM_UP).isEmpty()).isTrue();
        assertThat(of(OptionalDouble.empty(), WARM_UP).asMeasured()).isEmpty();
    }

    @Test
    void aWindowInWhichNothingWasAnsweredHasARateAndNoTimes() {
        assertThat(of(OptionalDouble.empty(), new SecondRow(1, 0, 0, 0, 0, 7, 0, new byte[0]))
                        .asMeasured())
                .isEqualTo(Map.of(Metric.THROUGHPUT, 0.0, Metric.SUCCESS_SHARE, 0.0));
    }

    /** The replies have the first five ranks of the 22 requests that were due. All other requests count as slower. */
    @Test
    void aPercentileOfAllThatWasDueCountsRequestsWithoutARightReplyAsTheSlowest() {
        TrialWindow window = of(OptionalDouble.empty(), WARM_UP, FIRST, SECOND);
        assertThat(window.isAnswered()).isFalse();
        assertThat(window.notSent()).isEqualTo(9);
        // ranks 3, 4, 5 and 6 of 22
        assertThat(window.ofDue(100.0 * 3 / 22)).isEqualTo(100e-6);
        assertThat(window.ofDue(100.0 * 4 / 22)).isEqualTo(400e-6);
        assertThat(window.ofDue(100.0 * 5 / 22)).isEqualTo(900e-6);
        assertThat(window.ofDue(100.0 * 6 / 22)).isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(window.ofDue(99)).isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(of(OptionalDouble.empty(), WARM_UP).ofDue(50)).isNaN();
    }

    @Test
    void whereAllIsAnsweredThePercentileOfAllThatWasDueIsThatOfTheReplies() {
        TrialWindow window = of(OptionalDouble.empty(), SECOND);
        assertThat(window.isAnswered()).isTrue();
        assertThat(window.ofDue(50)).isEqualTo(window.asMeasured().get(Metric.LATENCY_MEDIAN));
        assertThat(window.ofDue(99)).isEqualTo(window.asMeasured().get(Metric.LATENCY_P99));
    }

    @Test
    void secondsDrawnAgainHaveThePercentileOfTheirOwnRequests() {
        TrialWindow window = of(OptionalDouble.empty(), FIRST, SECOND);
        SplittableRandom random = new SplittableRandom(3);
        Set<Double> medians = new HashSet<>();
        for (int i = 0; i < 50; i++) {
            medians.add(window.drawnOfDue(50, random));
        }
        // the second twice has two replies of 100 ns among four; with the first most of the requests have none
        assertThat(medians).containsExactlyInAnyOrder(100e-6, Double.POSITIVE_INFINITY);
    }

    @Test
    void drawsPutAsManySecondsBackAsThereAre() {
        TrialWindow window = of(OptionalDouble.of(1), FIRST, SECOND);
        SplittableRandom random = new SplittableRandom(3);
        Set<Double> rates = new HashSet<>();
        for (int i = 0; i < 50; i++) {
            rates.add(window.drawn(random).get(Metric.THROUGHPUT));
        }
        // the first twice, one of each, the second twice
        assertThat(rates).containsExactlyInAnyOrder(6.0, 5.0, 4.0);
    }
}
