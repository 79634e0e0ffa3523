package dev.rpcx.internal.server;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Histogram of the times that calls were given, in classes that are a fifth wide. Any thread adds; one thread at a time
 * calls {@code take} and then reads the results.
 */
final class GivenTimes {
    /** Number of bits below the highest bit of a time that tell classes apart. */
    private static final int FINE_BITS = 2;

    /** The upper bits of a class count calls, the lower bits sum up their times, in units of 2^16 ns. */
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

    /** @return the class of a time of at least four nanoseconds */
    static int position(long nanos) {
        int bits = 63 - Long.numberOfLeadingZeros(nanos);
        return bits << FINE_BITS | (int) (nanos >>> bits - FINE_BITS) & (1 << FINE_BITS) - 1;
    }

    /** @return the least time of a class */
    static long lowest(int position) {
        long fine = 1 << FINE_BITS | position & (1 << FINE_BITS) - 1;
        return fine << (position >>> FINE_BITS) - FINE_BITS;
    }

    /** @param nanos a time within the bounds that the constructor has */
    void add(long nanos) {
        now.addAndGet(position(nanos) - lowest, 1L << COUNT_SHIFT | nanos >>> UNIT_SHIFT);
    }

    /**
     * Evaluates what has been added since the last time, and begins anew.
     *
     * @param part the usual time is the mean of the first class up to which one in {@code part} calls is counted
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
     * Half of all the time that was given went to calls that were given this at most: to move the value down, as much
     * time has to be given in short pieces as all other calls are given.
     */
    double middleNanos() {
        return middleNanos;
    }
}
