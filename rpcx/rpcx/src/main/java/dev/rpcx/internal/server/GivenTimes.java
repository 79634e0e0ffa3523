package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Counts calls by the time from their admission to their deadline, which is the time that their callers give them. The
 * counts form a histogram, in which the width of a bucket is at most a quarter of its lower bound. Any thread may call
 * {@code add}. Only one thread at a time may call {@code take} and read the results.
 */
final class GivenTimes {
    /**
     * The times from each power of two to the next are divided into 2^{@code FINE_BITS} buckets of equal width. For
     * example, the times from 8 to 15 ns have the four buckets 8-9, 10-11, 12-13 and 14-15.
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
     * Counts a call by the time that it was given. Any thread may call this method.
     *
     * @param nanos time from the admission of the call to its deadline, from {@code minNanos} to {@code maxNanos} of
     *     the constructor
     */
    void add(long nanos) {
        now.addAndGet(position(nanos) - lowest, 1L << COUNT_SHIFT | nanos >>> UNIT_SHIFT);
    }

    /**
     * Computes the results from the times that were added since the last call of this method, and clears the histogram.
     *
     * @param part determines the usual time, which is one of the results. With 20, for example, about one call in 20 is
     *     given at most the usual time, so the usual time is about the 5th percentile
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
     * Returns the middle time that calls were given, in nanoseconds, or 0 if no call was added. At most about half of
     * the sum of all times belongs to calls that were given less, and at most about half to calls that were given more.
     * For example, if 100 calls are given 10 ms each, which is 1 s in total, and one call is given 3 s, the middle time
     * is 3 s.
     */
    double middleNanos() {
        return middleNanos;
    }
}
