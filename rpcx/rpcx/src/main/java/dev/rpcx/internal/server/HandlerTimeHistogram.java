package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the time that handlers took, which shows how much of their total time went to long calls. The value of a
 * bucket is not a number of calls, but the sum of their durations. The width of a bucket is at most a quarter of its
 * lower bound. Any thread may call {@code add}. Only one thread at a time may call {@code take} and then read the
 * results.
 *
 * <p>Only a sample of the calls is added. The longer a call took, the more likely it is part of the sample. Some
 * hundreds of calls in the sample are enough, however many calls there are.
 */
final class HandlerTimeHistogram {
    /** Exponent of the unit in which durations are measured: the unit is 2^{@code UNIT_SHIFT} ns. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /**
     * Time that handlers took since the last {@code take}, for each bucket of durations. Its unit is
     * 2^{@code UNIT_SHIFT} ns.
     */
    private final AtomicLongArray now;

    private final long[] taken;

    /**
     * Determines how many calls are added to the histogram: at most one for each 2^{@code grainShift} units of time
     * that handlers take. A call is added if, with its duration, the sum of all durations reaches a further multiple of
     * this time. A unit is 2^{@code UNIT_SHIFT} ns.
     */
    private volatile int grainShift;

    private long sum;
    private double middleNanos;

    HandlerTimeHistogram(long maxNanos) {
        now = new AtomicLongArray(GivenTimes.position(maxNanos) - LOWEST + 1);
        taken = new long[now.length()];
    }

    /**
     * Adds the duration of a call, if the call is part of the sample. Any thread may call this.
     *
     * @param units duration of the call, in units of 2^{@code UNIT_SHIFT} ns, at most {@code maxNanos} of the
     *     constructor
     * @param sum sum of the durations of all calls up to and including this one, in the same units; the caller keeps
     *     this sum
     */
    void add(long units, long sum) {
        int shift = grainShift;
        if ((sum ^ sum - units) >>> shift != 0) {
            now.addAndGet(GivenTimes.position(units << UNIT_SHIFT) - LOWEST, Math.max(units, 1L << shift));
        }
    }

    /**
     * Computes the results from the calls that were added since the last call of this method, and clears the histogram.
     */
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

    /** Returns about how much time the handlers of all calls took together, in nanoseconds. */
    double sumNanos() {
        return sum * (double) (1L << UNIT_SHIFT);
    }

    /**
     * Returns the middle duration, in nanoseconds, or 0 if handlers took no time. About half of all the time that
     * handlers took went to calls that took at least this long each. Quick calls lower it only if, together, they took
     * as much time as all other calls.
     */
    double middleNanos() {
        return middleNanos;
    }
}
