package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * Measures how long recent answers of one method took, to decide whether a call without an answer had enough time for
 * one. A handler passes the remaining time of its own caller on to the calls that it makes, so other programs decide
 * how little time a call has. If a call fails because it had too little time, that says nothing about the called
 * service. If such failures counted against the service, a few callers in a hurry would make the service unavailable to
 * all others. Thread-safe. If two threads write at the same time, a part of what they write may be lost.
 */
public final class AnswerTimes {
    /** One of this many answers is measured. */
    private static final int SAMPLED = 16;

    /**
     * Length of a period in which the longest answer time is measured. What counts is the longest answer time of the
     * current period and of the period before it. A new period begins only with an answer, so this time does not change
     * while no answers come.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A call had enough time if it had at least the longest answer time multiplied by this number. */
    private static final int ENOUGH = 2;

    /**
     * A call also had enough time if it was sent with at least this fraction of the time that the method itself gives
     * each call. The rest of that time went by while the call waited for a connection.
     */
    private static final double NEARLY_ALL = 0.9;

    /** Time that the method itself gives each call. The context of the caller may limit it or replace it. */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    public AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /**
     * Whether the answer of a call is measured. As long as nothing has been measured, every answer is.
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
     * Whether a call that had this time and was not answered counts against the instance that was called.
     *
     * @param givenNanos remaining time of the call when it was sent
     */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
