package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the time that handlers took. The calls are sorted into buckets by their duration, and each bucket sums
 * up the time of its calls. The width of a bucket is at most a quarter of its lower bound, and on average a fifth. Any
 * thread may call {@code add}. Only one thread at a time calls {@code take} and then reads the results.
 *
 * <p>A call is sampled with a probability that grows with its duration, up to 1. So some hundreds of samples represent
 * any number of calls well enough, and the calls that take most of the time are all sampled.
 */
final class HandlerTimeHistogram {
    /** Exponent of the unit in which durations are measured: the unit is 2^{@code UNIT_SHIFT} ns. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /**
     * Time that was added since the last {@code take}, in units of 2^{@code UNIT_SHIFT} ns. One element for each
     * bucket, that is, for each range of durations.
     */
    private final AtomicLongArray now;

    private final long[] taken;

    /**
     * Exponent that determines which calls are sampled. All durations are added up, in units of 2^{@code UNIT_SHIFT}
     * ns. A call is sampled if its duration makes the sum reach or exceed a further multiple of 2^{@code grainShift}
     * units.
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

    /** Evaluates what was added since the last call of this method, and begins to count from 0 again. */
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
     * Returns the middle duration, in nanoseconds: half of all the time that handlers took went to calls that took at
     * least about this long each. Short calls, however many there are, lower this value only if together they take as
     * much time as all other calls. Returns 0 if handlers took no time.
     */
    double middleNanos() {
        return middleNanos;
    }
}
