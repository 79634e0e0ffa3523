package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the durations of calls. A bucket holds the total duration of its calls, not their number, so the
 * histogram shows how much of the time of all handlers went to long calls. The width of a bucket is at most a quarter
 * of its lower bound. Any thread may call {@code add}. Only one thread at a time may call {@code take} and read the
 * results.
 *
 * <p>Only a sample of the calls is added, because some hundreds of calls are enough for the results. The longer a call
 * took, the more likely it is in the sample.
 */
final class HandlerTimeHistogram {
    /** Durations are measured in units of 2^{@code UNIT_SHIFT} ns. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /**
     * Estimated total duration of all calls in each bucket since the last {@code take}, in units of
     * 2^{@code UNIT_SHIFT} ns.
     */
    private final AtomicLongArray now;

    private final long[] taken;

    /**
     * Determines how many calls are in the sample: at most one for each 2^{@code grainShift} units of handler time. A
     * unit is 2^{@code UNIT_SHIFT} ns. A call is in the sample if the sum of all durations reaches or passes a multiple
     * of 2^{@code grainShift} units when the call is added to it. For example, if 2^{@code grainShift} is 64 and calls
     * take 16 units each, every fourth call is in the sample.
     *
     * <p>{@link #take} writes the field, and any thread reads it in {@link #add}. A thread that reads an old value only
     * adds a few calls more or less.
     */
    private volatile int grainShift;

    private long sum;
    private double middleNanos;

    HandlerTimeHistogram(long maxNanos) {
        now = new AtomicLongArray(GivenTimes.position(maxNanos) - LOWEST + 1);
        taken = new long[now.length()];
    }

    /**
     * Adds the duration of a call if the call is part of the sample. Any thread may call this method.
     *
     * @param units duration of the call, in units of 2^{@code UNIT_SHIFT} ns; at most the {@code maxNanos} that the
     *     constructor got; a call of 0 units is never part of the sample
     * @param sum total duration of all calls up to and including this one, in the same units; the caller keeps this sum
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

    /** Returns about how much time the handlers of all calls took in total, in nanoseconds. */
    double sumNanos() {
        return sum * (double) (1L << UNIT_SHIFT);
    }

    /**
     * Returns the middle duration of calls, in nanoseconds; 0 if {@link #take} has found no call. All shorter calls
     * together take at most about half of the total time of all calls. All longer calls together also take at most
     * about half of the total time. For example, if 100 calls take 1 ms each and one call takes 300 ms, the total is
     * 400 ms, and the middle duration is about 300 ms.
     */
    double middleNanos() {
        return middleNanos;
    }
}
