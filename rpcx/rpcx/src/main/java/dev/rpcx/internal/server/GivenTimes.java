package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the times that callers give their calls, from the start of a call to its deadline. The width of a bucket
 * is at most a quarter of its lower bound. Any thread may call {@code add}. Only one thread at a time may call
 * {@code take} and then read the results.
 */
final class GivenTimes {
    /**
     * Number of bits, after the highest set bit of a time in nanoseconds, that determine the time's bucket. With 2
     * bits, there are four buckets from each power of two to the next.
     */
    private static final int FINE_BITS = 2;

    /**
     * In the value of a bucket, the bits from this one upwards are the number of calls. The bits below it are the sum
     * of the times that these calls were given, in units of 2^16 ns.
     */
    private static final int COUNT_SHIFT = 42;

    private static final int UNIT_SHIFT = 16;

    private final int lowest;
    private final AtomicLongArray now;
    private final long[] taken;
    private long count;
    private double meanNanos;
    private double usualNanos;
    private double middleNanos;

    GivenTimes(long minNanos, long maxNanos) {
        lowest = position(minNanos);
        now = new AtomicLongArray(position(maxNanos) - lowest + 1);
        taken = new long[now.length()];
    }

    /**
     * Returns the number of the bucket to which a time belongs.
     *
     * @param nanos a time of at least 4 ns
     */
    static int position(long nanos) {
        int bits = 63 - Long.numberOfLeadingZeros(nanos);
        return bits << FINE_BITS | (int) (nanos >>> bits - FINE_BITS) & (1 << FINE_BITS) - 1;
    }

    /** Returns the smallest time, in nanoseconds, that belongs to the bucket with this number. */
    static long lowest(int position) {
        long fine = 1 << FINE_BITS | position & (1 << FINE_BITS) - 1;
        return fine << (position >>> FINE_BITS) - FINE_BITS;
    }

    /**
     * Adds the time that a call was given. Any thread may call this.
     *
     * @param nanos a time from {@code minNanos} to {@code maxNanos} of the constructor
     */
    void add(long nanos) {
        now.addAndGet(position(nanos) - lowest, 1L << COUNT_SHIFT | nanos >>> UNIT_SHIFT);
    }

    /**
     * Computes the results from the times that were added since the last call of this method, and clears the histogram.
     *
     * @param part about one call in this number is given at most the usual time, which is one of the results. It is the
     *     mean time of the first bucket for which the calls of this and all lower buckets are at least 1 / {@code part}
     *     of all calls
     */
    void take(int part) {
        count = 0;
        long sum = 0;
        for (int i = 0; i < taken.length; i++) {
            taken[i] = now.getAndSet(i, 0);
            count += taken[i] >>> COUNT_SHIFT;
            sum += sum(taken[i]);
        }
        meanNanos = count == 0 ? 0 : sum * (double) (1L << UNIT_SHIFT) / count;
        usualNanos = 0;
        middleNanos = 0;
        long below = 0;
        long sumBelow = 0;
        for (int i = 0; i < taken.length && count > 0; i++) {
            below += taken[i] >>> COUNT_SHIFT;
            sumBelow += sum(taken[i]);
            if (below * part >= count && usualNanos == 0) {
                usualNanos = mean(taken[i]);
            }
            if (2 * sumBelow >= sum && middleNanos == 0) {
                middleNanos = mean(taken[i]);
            }
        }
    }

    private static long sum(long of) {
        return of & (1L << COUNT_SHIFT) - 1;
    }

    private static double mean(long of) {
        return sum(of) * (double) (1L << UNIT_SHIFT) / (of >>> COUNT_SHIFT);
    }

    long count() {
        return count;
    }

    double meanNanos() {
        return meanNanos;
    }

    double usualNanos() {
        return usualNanos;
    }

    /**
     * Returns the middle time, in nanoseconds, or 0 if no call was added. About half of all the time that calls were
     * given went to calls that were given at most this much each. Calls with little time lower it only if, together,
     * they were given as much time as all other calls.
     */
    double middleNanos() {
        return middleNanos;
    }
}
