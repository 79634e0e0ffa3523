package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * How long recent answers of one method took, to decide whether a call without an answer was given enough time for one.
 * A handler passes on what is left of its own caller's time, so strangers decide how little time a call has. A call
 * that fails for too little time says nothing of the called service: otherwise a few callers in a hurry would take the
 * service away from all others. Thread-safe; of what two threads write at once a part may be lost.
 */
public final class AnswerTimes {
    /** One in this many answers is measured. */
    private static final int SAMPLED = 16;

    /**
     * Length of a window. The longest time is that of the current window and of the one before. Without answers it
     * stays.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A call that is given this many times the time of the longest answer has been given enough. */
    private static final int ENOUGH = 2;

    /**
     * A call that is given this part of the method's own time has been given enough too: the rest went by on the way to
     * a connection.
     */
    private static final double NEARLY_ALL = 0.9;

    /** Time that the method gives each call by itself. */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    public AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /** @param serial any number that counts calls */
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

    /** Whether a call that was not answered in this time counts against the instance that was called. */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
