package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * Measures how long one method's recent answers took. From this it decides whether a call that got no answer had enough
 * time for one. A handler that makes calls passes its caller's remaining time on to them, which may be far too short.
 * Such a call must not count as a failure of the called service; otherwise a few callers in a hurry would make the
 * service unavailable to everybody.
 *
 * <p>Thread-safe. If two threads record an answer at the same time, one of the two may be lost.
 */
public final class AnswerTimes {
    /** Only one in this number of answers is measured. */
    private static final int SAMPLED = 16;

    /**
     * Length of a period in which the longest answer time is recorded. The longest answer time of the current period
     * and the previous one counts. A period ends only when an answer comes after its time, so the longest answer time
     * is not forgotten while there are no answers.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A call had enough time if its time was at least this multiple of the longest recent answer time. */
    private static final int ENOUGH = 2;

    /**
     * A call had enough time if it was sent with at least this fraction of the method's timeout. It then does not
     * matter how long recent answers took. The fraction is below 1 since some of the timeout is spent before sending,
     * for example in waiting for a connection.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * The timeout that is configured for the method. A single call may have less or more time, if the context of its
     * caller says so.
     */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    public AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /**
     * Returns whether the answer to a call has to be measured. Every answer has to be, until the first one has been
     * measured.
     *
     * @param serial any number that increases by one from call to call, for example the number of uses of the call's
     *     slot
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
     * Returns whether a call that got no answer had enough time for one. If so, the call counts as a failure of the
     * instance.
     *
     * @param givenNanos remaining time of the call when it was sent
     */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
