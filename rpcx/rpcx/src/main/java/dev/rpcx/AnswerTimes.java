package dev.rpcx;

import java.util.concurrent.TimeUnit;

/**
 * How long answers to one method lately took, to tell whether a call that got none was given enough time for one. A
 * handler passes on what is left of its own caller's time, so strangers decide how little that is: what fails for that
 * says nothing of the service that was called, or a few callers in a hurry would take it away from all others.
 * Thread-safe; what two threads write at once may be lost.
 */
final class AnswerTimes {
    /** One in so many answers is looked at. */
    private static final int SAMPLED = 16;

    /** The longest is that of so long, and of as long before. Without answers it stays. */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A call that is given so many times what the longest answer took has been given enough. */
    private static final int ENOUGH = 2;

    /** The same, of the time that this side gives by itself: the rest went by on the way to a connection. */
    private static final double NEARLY_ALL = 0.9;

    /** What the method gives each call by itself. */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /** @param serial counts calls, some way or other */
    boolean isWanted(long serial) {
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

    /** Whether a call that was not answered in this time counts against who was called. */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
