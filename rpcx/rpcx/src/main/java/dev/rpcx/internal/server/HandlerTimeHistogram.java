package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the time that handlers took, by the duration of calls, in classes that are a fifth wide. Any thread
 * adds; one thread at a time calls {@code take} and then reads the results. A call is sampled with a chance that grows
 * with its duration, up to one. So some hundreds of samples say enough of any number of calls, and the calls that take
 * most of the time are all seen.
 */
final class HandlerTimeHistogram {
    /** A unit of time is 2 to the power of this number, in nanoseconds. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /** Time that was added since the last {@code take}, by class of duration, in units. */
    private final AtomicLongArray now;

    private final long[] taken;

    /** A call is sampled if the sum passes a multiple of 2 to the power of this number, in units. */
    private volatile int grainShift;

    private long sum;
    private double middleNanos;

    HandlerTimeHistogram(long maxNanos) {
        now = new AtomicLongArray(GivenTimes.position(maxNanos) - LOWEST + 1);
        taken = new long[now.length()];
    }

    /**
     * @param units duration of the call, within the bound that the constructor has
     * @param sum sum of the durations of all calls up to and with this one, which the caller counts
     */
    void add(long units, long sum) {
        int shift = grainShift;
        if ((sum ^ sum - units) >>> shift != 0) {
            now.addAndGet(GivenTimes.position(units << UNIT_SHIFT) - LOWEST, Math.max(units, 1L << shift));
        }
    }

    /** Evaluates what has been added since the last time, and begins anew. */
    void take() {
        sum = 0;
        for (int i = 0; i < taken.length; i++) {
            taken[i] = now.getAndSet(i, 0);
            sum += taken[i];
        }
        grainShift = 63 - Long.numberOfLeadingZeros(Math.max(1, sum / LOOKS));
        middleNanos = 0;
        long below = 0;
        for (int i = 0; i < taken.length && sum > 0; i++) {
            below += taken[i];
            if (2 * below >= sum) {
                middleNanos = GivenTimes.lowest(i + LOWEST);
                return;
            }
        }
    }

    /** About how long all calls took together. */
    double sumNanos() {
        return sum * (double) (1L << UNIT_SHIFT);
    }

    /**
     * Half of all the time that handlers took went to calls that took at least this long: to move the value down, short
     * calls have to take as much time as all other calls take. 0 if handlers took no time.
     */
    double middleNanos() {
        return middleNanos;
    }
}
