package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the time that handlers took. Each bucket is the sum of the durations of its calls. The width of a bucket
 * is at most a quarter of its lower bound. Any thread may call {@code add}. Only one thread at a time may call
 * {@code take} and then read the results.
 *
 * <p>Only some calls are sampled. The probability grows with the duration of a call, up to 1. Some hundreds of samples
 * are enough for any number of calls.
 */
final class HandlerTimeHistogram {
    /** Exponent of the unit in which durations are measured: the unit is 2^{@code UNIT_SHIFT} ns. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /**
     * Time that was added since the last {@code take}, in units of 2^{@code UNIT_SHIFT} ns. The index is the bucket.
     */
    private final AtomicLongArray now;

    private final long[] taken;

    /**
     * Determines which calls are sampled. A call is sampled if its duration makes the sum of all durations reach a
     * further multiple of 2^{@code grainShift} units. A unit is 2^{@code UNIT_SHIFT} ns.
     */
    private volatile int grainShift;

    private long sum;
    private double middleNanos;

    HandlerTimeHistogram(long maxNanos) {
        now = new AtomicLongArray(GivenTimes.position(maxNanos) - LOWEST + 1);
        taken = new long[now.length()];
    }

    /**
     * Adds a call, if it is to be sampled. Any thread may call this.
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

    /** Computes the results from what was added since the last call of this method, and clears the histogram. */
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
     * Returns the middle duration, in nanoseconds: of all the time that handlers took, half went to calls that took at
     * least about this long each. Short calls lower this value only if together they took as much time as all other
     * calls. Returns 0 if handlers took no time.
     */
    double middleNanos() {
        return middleNanos;
    }
}
