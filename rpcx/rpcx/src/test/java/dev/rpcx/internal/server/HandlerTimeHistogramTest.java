package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HandlerTimeHistogramTest {
    private static final long UNIT = 1L << HandlerTimeHistogram.UNIT_SHIFT;
    private static final long MAX = 60_000_000_000L;

    private final HandlerTimeHistogram times = new HandlerTimeHistogram(MAX);
    private long sum;

    private void add(int calls, long units) {
        for (int i = 0; i < calls; i++) {
            sum += units;
            times.add(units, sum);
        }
    }

    private void take() {
        times.take();
        sum = 0;
    }

    @Test
    void ofNoneThereIsNoMiddle() {
        take();
        assertThat(times.middleNanos()).isZero();
        assertThat(times.sumNanos()).isZero();
        add(100, 0);
        take();
        assertThat(times.middleNanos()).isZero();
    }

    @Test
    void whatHasBeenTakenIsTakenOnce() {
        add(3, 1024);
        take();
        assertThat(times.middleNanos()).isEqualTo(1024 * UNIT);
        assertThat(times.sumNanos()).isEqualTo(3 * 1024 * UNIT);
        take();
        assertThat(times.sumNanos()).isZero();
    }

    /** However many quick calls there are, the result comes from the calls that have taken half of all the time. */
    @Test
    void theMiddleIsWhereHalfOfTheTimeIs() {
        add(1000, 4);
        add(4, 1024);
        take();
        assertThat(times.middleNanos()).isEqualTo(1024 * UNIT);
        add(1024, 4);
        add(4, 1024);
        take();
        assertThat(times.middleNanos()).isEqualTo(4 * UNIT);
    }

    /** The result is the least time of a bucket. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 7, 8, 1280, 1535, 1536, 915_527})
    void theMiddleIsAtMostAFifthLessThanWhatCallsTook(long units) {
        add(10, units);
        take();
        assertThat(times.middleNanos()).isBetween(0.8 * units * UNIT, (double) (units * UNIT));
    }

    @Test
    void theLongestTimeHasAClass() {
        times.add(MAX >>> HandlerTimeHistogram.UNIT_SHIFT, MAX >>> HandlerTimeHistogram.UNIT_SHIFT);
        times.take();
        assertThat(times.middleNanos()).isBetween(0.8 * MAX, (double) MAX);
    }

    /** The histogram takes only a sample of many calls, in which a short call stands for hundreds of them. */
    @Test
    void ofManyCallsSomeSayEnough() {
        add(65_536, 4);
        take();
        for (int i = 0; i < 10; i++) {
            add(65_536, 4);
            add(5, 65_536);
            take();
            assertThat(times.middleNanos()).isEqualTo(65_536 * UNIT);
            assertThat(times.sumNanos()).isCloseTo(9.0 * 65_536 * UNIT, Percentage.withPercentage(2));
            add(65_536, 4);
            add(3, 65_536);
            take();
            assertThat(times.middleNanos()).isEqualTo(4 * UNIT);
        }
    }

    /** This holds whatever the last results said of the number of calls. */
    @Test
    void aLongCallIsSeenAmongAnyNumberOfShortOnes() {
        add(1_000_000, 64);
        take();
        add(400, 1);
        add(1, 900_000);
        add(400, 1);
        take();
        assertThat(times.middleNanos()).isBetween(720_000.0 * UNIT, 900_000.0 * UNIT);
    }
}
