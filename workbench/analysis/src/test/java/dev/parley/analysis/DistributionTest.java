package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class DistributionTest {
    @Test
    void percentilesOfMergedSecondsAreThoseOfOneHistogramOfAll() {
        SplittableRandom random = new SplittableRandom(1);
        Histogram all = new Histogram(3);
        List<byte[]> seconds = new java.util.ArrayList<>();
        for (int second = 0; second < 30; second++) {
            Histogram one = new Histogram(3);
            for (int i = 0; i < 500; i++) {
                long value = (long) (1e6 * Math.exp(random.nextGaussian()));
                one.recordValue(value);
                all.recordValue(value);
            }
            seconds.add(Encoded.of(one));
        }
        Distribution merged = Distribution.merged(seconds);
        assertThat(merged.total()).isEqualTo(15_000);
        for (double p : new double[] {0.1, 50, 90, 95, 99, 99.9, 99.99, 100}) {
            assertThat(merged.percentileNs(p)).as("p%s", p).isEqualTo(all.getValueAtPercentile(p));
        }
        assertThat(merged.meanNs()).isCloseTo(all.getMean(), within(all.getMean() / 500));
    }

    @Test
    void aSlowSecondIsNotAveragedAway() {
        long[] fast = new long[990];
        java.util.Arrays.fill(fast, 1_000_000);
        long[] slow = new long[10];
        java.util.Arrays.fill(slow, 1_000_000_000);
        Distribution merged = Distribution.merged(List.of(Encoded.of(fast), Encoded.of(slow)));
        assertThat(merged.percentileNs(99) / 1e6).isCloseTo(1, within(0.01));
        assertThat(merged.percentileNs(99.1) / 1e6).isCloseTo(1000, within(1.0));
    }

    @Test
    void knownDistributionsAreRecoveredWithinOnePercent() {
        Histogram uniform = new Histogram(3);
        for (int i = 1; i <= 100_000; i++) {
            uniform.recordValue(i * 1_000L);
        }
        Distribution d = Distribution.merged(List.of(Encoded.of(uniform)));
        assertThat(d.percentileNs(50)).isCloseTo(50_000_000, within(500_000.0));
        assertThat(d.percentileNs(90)).isCloseTo(90_000_000, within(900_000.0));
        assertThat(d.percentileNs(99)).isCloseTo(99_000_000, within(990_000.0));
        assertThat(d.percentileNs(99.9)).isCloseTo(99_900_000, within(999_000.0));
    }

    @Test
    void nothingRecordedGivesNoFigure() {
        Distribution nothing = Distribution.merged(List.of(new byte[0], Encoded.of()));
        assertThat(nothing.isEmpty()).isTrue();
        assertThat(nothing.meanNs()).isNaN();
        assertThat(nothing.percentileNs(99)).isNaN();
        assertThat(nothing.tail()).isEmpty();
    }

    @Test
    void zeroIsAValueLikeAnyOther() {
        Distribution d = Distribution.merged(List.of(Encoded.of(0, 0, 1_000)));
        assertThat(d.total()).isEqualTo(3);
        assertThat(d.percentileNs(50)).isZero();
    }

    @Test
    void bytesThatAreNoHistogramAreRefused() {
        assertThatThrownBy(() -> Distribution.merged(List.of(new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9})))
                .isInstanceOf(RuntimeException.class);
    }
}
