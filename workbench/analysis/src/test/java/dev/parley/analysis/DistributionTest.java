package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
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

    /** Whatever the shape of a histogram: what is read without the library is what the library reads. */
    @Test
    void countsAreThoseThatTheLibraryReads() {
        SplittableRandom random = new SplittableRandom(5);
        for (int digits = 0; digits <= 5; digits++) {
            for (long unit : new long[] {1, 1_000}) {
                List<byte[]> some = new java.util.ArrayList<>(List.of(new byte[0]));
                for (int n : new int[] {0, 1, 2, 100, 3_000}) {
                    Histogram one = new Histogram(unit, Math.max(2 * unit, Long.MAX_VALUE / 4), digits);
                    for (int i = 0; i < n; i++) {
                        one.recordValueWithCount(
                                random.nextLong(Long.MAX_VALUE / 4) >> random.nextInt(60), 1L << random.nextInt(50));
                    }
                    some.add(Encoded.of(one));
                }
                for (byte[] one : some) {
                    assertReadAsByTheLibrary(List.of(one));
                }
                assertReadAsByTheLibrary(some);
                // of another shape than the others
                some.add(Encoded.of(7, 7, 1_000_000));
                assertReadAsByTheLibrary(some);
            }
        }
    }

    private static void assertReadAsByTheLibrary(List<byte[]> encoded) {
        TreeMap<Long, Long> expected = new TreeMap<>();
        encoded.forEach(one -> Distribution.addTo(expected, one));
        Distribution read = Distribution.merged(encoded);
        assertThat(read.values()).isEqualTo(Distribution.of(expected).values());
        assertThat(read.counts()).isEqualTo(Distribution.of(expected).counts());
    }

    @Test
    void whatIsNoHistogramIsSaidOrReadAsByTheLibrary() {
        byte[] whole = Encoded.of(1, 5, 1_000_000, 1_000_000_000);
        for (int at = 0; at < whole.length; at++) {
            for (int bit = 0; bit < 8; bit++) {
                byte[] hurt = whole.clone();
                hurt[at] ^= (byte) (1 << bit);
                assertThatCode(() -> Distribution.merged(List.of(hurt)))
                        .satisfiesAnyOf(
                                e -> assertThat(e).isNull(), e -> assertThat(e).isInstanceOf(RuntimeException.class));
            }
        }
        for (int length = 1; length < whole.length; length++) {
            byte[] cut = java.util.Arrays.copyOf(whole, length);
            assertThatThrownBy(() -> Distribution.merged(List.of(cut))).isInstanceOf(RuntimeException.class);
        }
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

    /** Times under 2 048 ns are kept exactly by a histogram of three digits. */
    @Test
    void ranksAreCountedOnPaper() {
        Distribution d = Distribution.merged(List.of(Encoded.of(10, 20), Encoded.of(30, 40)));
        assertThat(d.meanNs()).isEqualTo(25);
        assertThat(d.sumNs()).isEqualTo(100);
        assertThat(d.percentileNs(0)).isEqualTo(10);
        assertThat(d.percentileNs(25)).isEqualTo(10);
        assertThat(d.percentileNs(25.1)).isEqualTo(20);
        assertThat(d.percentileNs(75)).isEqualTo(30);
        assertThat(d.percentileNs(75.1)).isEqualTo(40);
        assertThat(d.percentileNs(100)).isEqualTo(40);
        // beyond the ends, the ends
        assertThat(d.percentileNs(-5)).isEqualTo(10);
        assertThat(d.percentileNs(140)).isEqualTo(40);
        assertThat(d.isEmpty()).isFalse();
    }

    @Test
    void oneHistogramIsReadAsSeveralAre() {
        Distribution alone = Distribution.merged(List.of(Encoded.of(5, 5, 5_000_000)));
        Distribution withNothing = Distribution.merged(List.of(Encoded.of(5, 5, 5_000_000), new byte[0]));
        assertThat(alone.values()).isEqualTo(withNothing.values());
        assertThat(alone.counts()).isEqualTo(withNothing.counts()).containsExactly(2, 1);
        assertThat(alone.total()).isEqualTo(3);
        // as HdrHistogram tells them: the highest of a bucket's values
        assertThat(alone.values()[0]).isEqualTo(5);
        assertThat(alone.values()[1]).isBetween(5_000_000L, 5_005_000L);
        assertThat(alone.values()[1] + 1).matches(next -> next % 2048 == 0, "the end of its bucket");
        Distribution none = Distribution.merged(List.of(new byte[0]));
        assertThat(none.total()).isZero();
        assertThat(none.sumNs()).isZero();
    }

    @Test
    void theSameTimeInTwoSecondsIsOneValue() {
        Distribution d = Distribution.merged(List.of(Encoded.of(7, 7), Encoded.of(7, 9)));
        assertThat(d.values()).containsExactly(7, 9);
        assertThat(d.counts()).containsExactly(3, 1);
    }

    @Test
    void theTailGoesOnUntilOneSampleIsLeft() {
        long[] times = new long[8];
        for (int i = 0; i < times.length; i++) {
            times[i] = (i + 1) * 10L;
        }
        List<double[]> tail = Distribution.merged(List.of(Encoded.of(times))).tail();
        // half, and half of the half, each in two steps, until one of eight is left
        assertThat(tail)
                .extracting(point -> Math.rint(point[0] * 100) / 100)
                .containsExactly(0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 64.64, 75.0, 82.32);
        assertThat(tail)
                .extracting(point -> point[1])
                .containsExactly(10.0, 10.0, 20.0, 30.0, 40.0, 40.0, 60.0, 60.0, 70.0);
        // half of two samples is one
        assertThat(Distribution.merged(List.of(Encoded.of(10, 20))).tail())
                .extracting(point -> point[0])
                .containsExactly(0.0, 10.0, 20.0, 30.0, 40.0, 50.0);
    }

    @Test
    void aHistogramThatIsCutOffIsNamedWithItsLength() {
        byte[] whole = Encoded.of(1, 2, 3);
        byte[] spoilt = whole.clone();
        java.util.Arrays.fill(spoilt, 8, spoilt.length, (byte) 0x55);
        assertThatThrownBy(() -> Distribution.merged(List.of(spoilt)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("a histogram of " + whole.length + " bytes does not decode");
    }
}
