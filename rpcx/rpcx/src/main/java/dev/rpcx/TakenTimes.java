package dev.rpcx;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * How much of the time that handlers took went to calls of which length, by classes that are a fifth wide. Any thread
 * adds; one at a time takes, and then asks. A call is looked at with a chance that grows with its length, up to one, so
 * some hundreds of looks say enough of any number of calls, and those that take most of the time are all seen.
 */
final class TakenTimes {
    /** A unit of time is two to the power of this, in nanoseconds. */
    static final int UNIT_SHIFT = 16;

    private static final int LOOKS = 256;
    private static final int LOWEST = GivenTimes.position(1L << UNIT_SHIFT);

    /** In units. */
    private final AtomicLongArray now;

    private final long[] taken;

    /** One look each time that the sum passes a multiple of so many units, as a power of two. */
    private volatile int grainShift;

    private long sum;
    private double middleNanos;

    TakenTimes(long maxNanos) {
        now = new AtomicLongArray(GivenTimes.position(maxNanos) - LOWEST + 1);
        taken = new long[now.length()];
    }

    /**
     * @param units that a call took, within the bound
     * @param sum of all calls up to this one, whoever counts it
     */
    void add(long units, long sum) {
        int shift = grainShift;
        if ((sum ^ sum - units) >>> shift != 0) {
            now.addAndGet(GivenTimes.position(units << UNIT_SHIFT) - LOWEST, Math.max(units, 1L << shift));
        }
    }

    /** Takes what has been added since the last time. */
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
     * Half of all the time that handlers took went to calls that took this at least: to move it down, as much of it has
     * to be taken in short pieces as all others take. 0 where they took none.
     */
    double middleNanos() {
        return middleNanos;
    }
}
