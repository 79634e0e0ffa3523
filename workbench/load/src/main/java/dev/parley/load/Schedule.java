package dev.parley.load;

import dev.parley.model.Load.Arrivals;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * When the requests or users of an open load are due: a function of index and start, never a sum of intervals that
 * rounding could let drift. Memory does not grow with its length. One thread.
 *
 * <p>Arrivals are laid out where one is expected for each unit of length, evenly or as a Poisson process, and brought
 * to time by the inverse of the number expected until then: so a ramp's arrivals are spread as its rate says.
 */
final class Schedule {
    static final long NEVER = Long.MAX_VALUE;
    /** Arrivals expected in one block of a Poisson process: few enough that drawing them delays no request. */
    private static final int BLOCK = 256;

    private static final double NANOS = 1e9;

    private final double from;
    private final double to;
    private final double seconds;
    private final double expected;
    private final Arrivals arrivals;
    private final long seed;

    /** The Poisson block under way: its number, the index of its first arrival, and its arrivals. */
    private long block = -1;

    private long blockFirst;
    private double[] blockArrivals = {};

    /**
     * All that fall due within {@code lengthNs}, at a rate that goes in a straight line from {@code from} to {@code to}
     * a second. The same seed gives the same times.
     */
    Schedule(double from, double to, long lengthNs, Arrivals arrivals, long seed) {
        this.from = from;
        this.to = to;
        this.seconds = lengthNs / NANOS;
        this.expected = (from + to) / 2 * seconds;
        this.arrivals = arrivals;
        this.seed = seed;
    }

    /**
     * A seed of its own for the {@code number}-th of several schedules, so that trials and stretches draw arrivals of
     * their own: a draw used again would give every restart the same surplus, which no number of restarts averages out.
     */
    static long derived(long seed, long number) {
        return mixed(mixed(seed) ^ mixed(number + 1));
    }

    /** Nanoseconds after the start at which request {@code index}, from 0, is due; {@link #NEVER} past the last. */
    long offsetNs(long index) {
        double place = switch (arrivals) {
            case EVEN -> index;
            case POISSON -> poisson(index);
        };
        // the tolerance keeps 0.1 s × 10/s from having two arrivals
        return place < expected - 1e-9 ? (long) (time(place) * NANOS) : NEVER;
    }

    /**
     * The second at which {@code place} arrivals are expected to have come: the root of from·t + (to −
     * from)·t²/2·seconds = place.
     */
    private double time(double place) {
        return from == to
                ? place / from
                : 2 * place / (from + Math.sqrt(Math.max(0, from * from + 2 * (to - from) * place / seconds)));
    }

    private double poisson(long index) {
        if (index < blockFirst) {
            block = -1;
            blockFirst = 0;
            blockArrivals = new double[0];
        }
        while (index >= blockFirst + blockArrivals.length) {
            if ((block + 1) * BLOCK >= expected) {
                return expected;
            }
            blockFirst += blockArrivals.length;
            block++;
            blockArrivals = draw(block);
        }
        return blockArrivals[(int) (index - blockFirst)];
    }

    /**
     * SplittableRandom steps through its seeds by a constant: seeds that stand in a simple relation give the same
     * numbers, shifted, and blocks that depend on one another. Source: Stafford's variant 13 of the MurmurHash3
     * finalizer.
     */
    private static long mixed(long value) {
        long z = (value ^ value >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }

    /** Given how many fall into an interval, the times of a Poisson process are uniform in it. */
    private double[] draw(long number) {
        // java.util.Random's first values hardly differ between neighbouring seeds
        SplittableRandom random = new SplittableRandom(mixed(mixed(seed) + number));
        int count = 0;
        // Knuth's product method
        double least = Math.exp(-BLOCK);
        for (double product = random.nextDouble(); product > least; product *= random.nextDouble()) {
            count++;
        }
        double[] places = new double[count];
        for (int i = 0; i < count; i++) {
            places[i] = (number + random.nextDouble()) * BLOCK;
        }
        Arrays.sort(places);
        return places;
    }
}
