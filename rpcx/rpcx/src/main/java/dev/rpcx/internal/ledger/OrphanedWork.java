package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the work of one address that still runs or waits after the connections that began it are gone: handlers, or
 * their threads. What a new connection finds left behind is in its share until that has ended: it may be of the same
 * caller, who would otherwise have a new share with each new connection. What is left behind later is not in the share
 * of connections that were there before: they keep what they would have beside a connection that stays, since leaving
 * must be no better a weapon against them.
 *
 * <p>What was left first counts as what ends first, so that one number, the mark, says what a connection has found.
 * Thread-safe.
 */
public final class OrphanedWork {
    /** Mark of a connection that is gone: all that runs counts for it, including its own. */
    public static final long ALL = Long.MAX_VALUE;

    /** Number of all that has ever been left behind. */
    private final AtomicLong left = new AtomicLong();

    /** Number of what has been left behind and has ended, or waits no longer. */
    private final AtomicLong ended = new AtomicLong();

    private final AtomicLong running = new AtomicLong();

    /** Mark that a connection which comes now keeps: see {@link #runningOf}. */
    public long mark() {
        return left.get();
    }

    /** A connection is gone that has {@code runs} tasks running and {@code waits} tasks waiting. */
    public void leave(long runs, long waits) {
        running.addAndGet(runs);
        left.addAndGet(runs + waits);
    }

    /** Something that has waited begins to run. */
    public void begin() {
        running.incrementAndGet();
    }

    /** Something that has run has ended. */
    public void end() {
        running.decrementAndGet();
        ended.incrementAndGet();
    }

    /** {@code waited} tasks wait no longer, and will not run. */
    public void drop(long waited) {
        ended.addAndGet(waited);
    }

    /**
     * Largest mark with which a connection has nothing left behind in its share: all that it had found has ended, or
     * waits no longer.
     */
    public long ended() {
        return ended.get();
    }

    /** Smallest mark with which a connection has all that runs in its share. It never decreases. */
    public long allFrom() {
        return ended.get() + running.get();
    }

    /** Returns how much runs of what had been left behind when a connection with this mark came. */
    public long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
