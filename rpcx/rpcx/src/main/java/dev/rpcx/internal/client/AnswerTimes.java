package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;

/**
 * Measures how long the recent answers of one method took, and decides whether an unanswered call had enough time. A
 * handler passes the remaining time of its caller on to the calls that it makes, and this time may be far too short. A
 * call with too little time must not count as a failure of the called service. Otherwise a few callers in a hurry would
 * make the service unavailable to everybody.
 *
 * <p>Thread-safe: callers' threads and event loops, on which calls end, record and read the times without a lock. If
 * two threads record an answer at the same time, one of the answers may be lost.
 */
public final class AnswerTimes {
    /** Only one in this number of answers is measured on the native wire. On the classic wire, each one is measured. */
    private static final int SAMPLED = 16;

    /**
     * Shortest length of a period for which the longest answer time is recorded. {@link #isEnough} uses the longest
     * answer time of the current period and the previous one. After this length of time, the next answer begins a new
     * period. So the longest time is not forgotten while there are no answers.
     */
    private static final long MEMORY_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Multiple of the longest recent answer time that counts as enough time for a call. */
    private static final int ENOUGH = 2;

    /**
     * Fraction of the method's timeout that always counts as enough time for a call. For example, if the timeout is
     * 10 s, a call that had 9 s left when it was sent had enough time, even if recent answers took longer. The fraction
     * is below 1 since some of the timeout is spent before sending, for example in waiting for a connection.
     */
    private static final double NEARLY_ALL = 0.9;

    /**
     * Timeout that is configured for the method, in nanoseconds. A single call can have less or more time, if the
     * context of its caller says so.
     */
    private final long ownNanos;

    private volatile long longestNanos;
    private volatile long longestBefore;
    private volatile long memoryEndNanos;

    public AnswerTimes(long ownNanos) {
        this.ownNanos = ownNanos;
    }

    /**
     * Returns whether to measure how long the answer to a call took. This is so for one in {@link #SAMPLED} calls, and
     * for all calls until the first answer has been measured.
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
     * Returns whether a call that got no answer had enough time for one. If it had, the call counts as a failure of the
     * instance.
     *
     * @param givenNanos time that the call had left when it was sent, in nanoseconds. For a call that got no
     *     connection, this is the time that it had left when it began to wait for a connection
     */
    boolean isEnough(long givenNanos) {
        long longest = Math.max(longestNanos, longestBefore);
        return givenNanos >= NEARLY_ALL * ownNanos || longest != 0 && givenNanos / ENOUGH >= longest;
    }
}
