package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.Load;
import dev.parley.model.Load.Arrivals;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ScheduleTest {
    private static final long HOUR_NS = 3_600_000_000_000L;

    @ParameterizedTest
    @ValueSource(doubles = {10, 100, 1000, 10_000, 333.3})
    void evenArrivalsNeverDrift(double rate) {
        Schedule schedule = Schedule.of(new Load.Open(rate, Arrivals.EVEN), HOUR_NS, 1);
        assertThat(schedule.count()).isEqualTo((int) Math.ceil(rate * 3600 - 1e-9));
        int last = schedule.count() - 1;
        assertThat((double) schedule.offsetNs(last)).isCloseTo(last / rate * 1e9, within(1.0));
    }

    @Test
    void poissonArrivalsHaveTheirRateAndSpread() {
        Schedule schedule = Schedule.of(new Load.Open(1000, Arrivals.POISSON), HOUR_NS / 60, 7);
        int n = schedule.count();
        assertThat(n).isBetween(59_000, 61_000);
        double[] gaps = IntStream.range(1, n)
                .mapToDouble(i -> schedule.offsetNs(i) - schedule.offsetNs(i - 1))
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
    void fewPoissonArrivalsAverageOutToTheirRate() {
        double sum = IntStream.range(0, 2000)
                .map(seed -> Schedule.of(new Load.Open(3, Arrivals.POISSON), 1_000_000_000, seed)
                        .count())
                .average()
                .orElseThrow();
        assertThat(sum).isCloseTo(3, within(0.15));
    }

    @Test
    void theSameSeedGivesTheSameTimes() {
        Load.Open load = new Load.Open(100, Arrivals.POISSON);
        Schedule one = Schedule.of(load, HOUR_NS / 60, 3);
        Schedule two = Schedule.of(load, HOUR_NS / 60, 3);
        assertThat(IntStream.range(0, one.count()).mapToLong(one::offsetNs))
                .containsExactly(IntStream.range(0, two.count())
                        .mapToLong(two::offsetNs)
                        .boxed()
                        .toArray(Long[]::new));
    }
}
