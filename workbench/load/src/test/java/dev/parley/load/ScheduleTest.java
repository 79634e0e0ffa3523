package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.Load.Arrivals;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class ScheduleTest {
    private static final long MINUTE_NS = 60_000_000_000L;
    private static final long HOUR_NS = 60 * MINUTE_NS;

    private static Schedule held(double rate, long lengthNs, Arrivals arrivals, long seed) {
        return new Schedule(rate, rate, lengthNs, arrivals, seed);
    }

    private static long[] offsets(Schedule schedule) {
        return LongStream.iterate(0, i -> schedule.offsetNs(i) != Schedule.NEVER, i -> i + 1)
                .map(schedule::offsetNs)
                .toArray();
    }

    @ParameterizedTest
    @ValueSource(doubles = {10, 100, 1000, 10_000, 333.3})
    void evenArrivalsNeverDrift(double rate) {
        Schedule schedule = held(rate, HOUR_NS, Arrivals.EVEN, 1);
        long last = (long) Math.ceil(rate * 3600 - 1e-9) - 1;
        assertThat((double) schedule.offsetNs(last)).isCloseTo(last / rate * 1e9, within(1.0));
        assertThat(schedule.offsetNs(last + 1)).isEqualTo(Schedule.NEVER);
    }

    @Test
    void poissonArrivalsHaveTheirRateAndSpread() {
        long[] offsets = offsets(held(1000, MINUTE_NS, Arrivals.POISSON, 7));
        assertThat(offsets.length).isBetween(59_000, 61_000);
        assertThat(offsets).isSorted();
        double[] gaps = IntStream.range(1, offsets.length)
                .mapToDouble(i -> offsets[i] - offsets[i - 1])
                .toArray();
        double mean = IntStream.range(0, gaps.length)
                .mapToDouble(i -> gaps[i])
                .average()
                .orElseThrow();
        double variance = IntStream.range(0, gaps.length)
                .mapToDouble(i -> (gaps[i] - mean) * (gaps[i] - mean))
                .average()
                .orElseThrow();
        // an exponential distribution's deviation equals its mean
        assertThat(Math.sqrt(variance) / mean).isCloseTo(1.0, within(0.03));
    }

    @Test
    void howManyArriveSpreadsAsInAPoissonProcess() {
        // 100 minutes with 6 000 arrivals expected in each: their variance is 6 000 too, if no block hangs on another
        double[] counts = IntStream.range(0, 100)
                .mapToDouble(seed -> offsets(held(100, MINUTE_NS, Arrivals.POISSON, seed)).length)
                .toArray();
        double mean = DoubleStream.of(counts).average().orElseThrow();
        double variance = DoubleStream.of(counts)
                        .map(count -> (count - mean) * (count - mean))
                        .sum()
                / 99;
        assertThat(mean).isCloseTo(6000, within(30.0));
        assertThat(variance / 6000).isBetween(0.6, 1.5);
    }

    @Test
    void fewPoissonArrivalsAverageOutToTheirRate() {
        double mean = IntStream.range(0, 2000)
                .map(seed -> offsets(held(3, 1_000_000_000, Arrivals.POISSON, seed)).length)
                .average()
                .orElseThrow();
        assertThat(mean).isCloseTo(3, within(0.15));
    }

    @Test
    void theSameSeedGivesTheSameTimesInWhateverOrderTheyAreAsked() {
        long[] forward = offsets(held(100, MINUTE_NS, Arrivals.POISSON, 3));
        Schedule again = held(100, MINUTE_NS, Arrivals.POISSON, 3);
        for (int i = forward.length - 1; i >= 0; i -= 97) {
            assertThat(again.offsetNs(i)).isEqualTo(forward[i]);
        }
    }

    @ParameterizedTest
    @EnumSource(Arrivals.class)
    void aRampHasItsRateAtEveryMoment(Arrivals arrivals) {
        // 100 → 1 200 a second over a minute: 39 000 arrivals, 11 250 of them in the first half
        long[] offsets = offsets(new Schedule(100, 1200, MINUTE_NS, arrivals, 5));
        double tolerance = arrivals == Arrivals.EVEN ? 1e-4 : 0.03;
        long firstHalf = LongStream.of(offsets).filter(ns -> ns < MINUTE_NS / 2).count();
        assertThat(offsets.length / 39_000.0).isCloseTo(1, within(tolerance));
        assertThat(firstHalf / 11_250.0).isCloseTo(1, within(tolerance));
        assertThat(offsets).isSorted();
    }

    @Test
    void aRampMayGoDown() {
        long[] offsets = offsets(new Schedule(1200, 100, MINUTE_NS, Arrivals.EVEN, 5));
        assertThat(offsets).hasSize(39_000).isSorted();
        assertThat(offsets[offsets.length - 1]).isLessThan(MINUTE_NS);
    }
}
