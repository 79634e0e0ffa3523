package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * Measures how long recent answers of one method took, to decide whether a call without an answer had enough time. A
 * handler passes its caller's remaining time on to its own calls, so that time may be too short. The failure of such a
 * call must not count against the called service: a few callers in a hurry would make the service unavailable to all.
 * Thread-safe; if two threads write at the same time, measurements may be lost.
 */
public final class AnswerTimes {
    /** One of this many answers is measured. */
    private static final int SAMPLED = 16;

    /**
     * Length of a period. The longest answer time of the current period and of the one before it counts. Only an answer
     * begins a new period, so this longest time is kept while no answers come.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A call had enough time if it had at least the longest answer time multiplied by this number. */
    private static final int ENOUGH = 2;

    /**
     * A call also had enough time if it was sent with at least this fraction of the method's own time. The rest was
     * spent waiting for a connection.
     */
    private static final double NEARLY_ALL = 0.9;

    /** The method's own time for each call, which the context of the caller may limit or replace. */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    public AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /**
     * Returns whether to measure the answer of a call. Until one answer has been measured, all are.
     *
     * @param serial number of the call in any count of calls, for example in the count of its slot's uses
     */
    boolean isSampled(long serial) {
        return serial % SAMPLED == 0 || longestNanos == 0;
    }

    void answered(long tookNanos, long nowNanos) {
        long took = Math.max(1, tookNanos);
        if (longestNanos == 0 || nowNanos - memoryEndNanos >= 0) {
            memoryEndNanos = nowNanos + MEMORY_NANOS;
            longestBefore = longestNanos;
            longestNanos = took;
        } else if (took > longestNanos) {
            longestNanos = took;
        }
    }

    /**
     * Returns whether a call that was not answered counts against the called instance.
     *
     * @param givenNanos remaining time of the call when it was sent
     */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
