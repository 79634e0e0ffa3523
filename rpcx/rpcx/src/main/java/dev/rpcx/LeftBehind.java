package dev.rpcx;

import java.util.concurrent.atomic.AtomicLong;

/**
 * What goes on, or waits, when the connections of one address are gone that have begun it: handlers, or their threads.
 * What a connection finds of it when it comes is in its share until that has ended: it may be of the same caller, who
 * would otherwise have a new share each time that it comes again. What is left later is not: the connections that were
 * there before keep what they have beside one that stays, since leaving must be no better a weapon against them.
 *
 * <p>What was left first counts as what ends first, so that a connection is known by a number. Thread-safe.
 */
final class LeftBehind {
    /** The mark of a connection that is gone: all that runs counts for it, its own too. */
    static final long ALL = Long.MAX_VALUE;

    /** All that ever was left. */
    private final AtomicLong left = new AtomicLong();

    /** So much of it has ended, or waits no longer. */
    private final AtomicLong ended = new AtomicLong();

    private final AtomicLong running = new AtomicLong();

    /** What a connection that comes now keeps: see {@link #runningOf}. */
    long mark() {
        return left.get();
    }

    /** A connection is gone that runs so much and has so much waiting. */
    void leave(long runs, long waits) {
        running.addAndGet(runs);
        left.addAndGet(runs + waits);
    }

    /** Something runs that has waited. */
    void begin() {
        running.incrementAndGet();
    }

    /** Something that has run has ended. */
    void end() {
        running.decrementAndGet();
        ended.incrementAndGet();
    }

    /** So much waits no longer, and will not run. */
    void drop(long waited) {
        ended.addAndGet(waited);
    }

    /** Whoever has a mark up to this has nothing of it in its share. */
    long ended() {
        return ended.get();
    }

    /** Whoever has a mark from this on has all that runs in its share. It never grows less. */
    long allFrom() {
        return ended.get() + running.get();
    }

    /** What runs of that which had been left when a connection with this mark came. */
    long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
