package dev.parley.load;

import dev.parley.model.Load;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * When the requests of an open load are due: a function of index and start, never a sum of intervals that rounding could let drift.
 * Immutable.
 */
final class Schedule {
    private static final double NANOS = 1e9;

    private final Load.Open load;
    private final int count;
    /** Poisson arrivals, nanoseconds from the start; empty when even. */
    private final long[] offsetsNs;

    private Schedule(Load.Open load, int count, long[] offsetsNs) {
        this.load = load;
        this.count = count;
        this.offsetsNs = offsetsNs;
    }

    /** All requests due within {@code lengthNs}. The same seed gives the same times. */
    static Schedule of(Load.Open load, long lengthNs, long seed) {
        double expected = load.perSecond() * lengthNs / NANOS;
        return switch (load.arrivals()) {
            case EVEN -> new Schedule(load, (int) Math.ceil(expected - 1e-9), new long[0]);
            case POISSON -> {
                // given how many fall into an interval, the times of a Poisson process are uniform in it
                // java.util.Random's first values hardly differ between neighbouring seeds
                SplittableRandom random = new SplittableRandom(seed);
                int n = poisson(expected, random);
                long[] offsets = new long[n];
                for (int i = 0; i < n; i++) {
                    offsets[i] = (long) (random.nextDouble() * lengthNs);
                }
                Arrays.sort(offsets);
                yield new Schedule(load, n, offsets);
            }
        };
    }

    int count() {
        return count;
    }

    /** Nanoseconds after the start at which request {@code index}, from 0, is due. */
    long offsetNs(int index) {
        return offsetsNs.length == 0 ? (long) (index * NANOS / load.perSecond()) : offsetsNs[index];
    }

    /** Knuth's product method in pieces small enough not to underflow; normal approximation above, where its error is under 0.1 %. */
    private static int poisson(double mean, SplittableRandom random) {
        if (mean > 10_000) {
            return (int) Math.max(0, Math.round(mean + Math.sqrt(mean) * random.nextGaussian()));
        }
        int n = 0;
        for (double left = mean; left > 0; left -= 500) {
            double limit = Math.exp(-Math.min(left, 500));
            for (double product = random.nextDouble(); product > limit; product *= random.nextDouble()) {
                n++;
            }
        }
        return n;
    }
}
