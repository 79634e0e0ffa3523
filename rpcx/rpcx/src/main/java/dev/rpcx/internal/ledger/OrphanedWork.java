package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the work of one address that still runs or waits after the connections that began it are gone. The work is
 * handlers, or tasks that have a thread or wait for one. What a new connection finds left behind counts in the share of
 * that connection until it has ended: it may be of the same caller, who would otherwise have a new share with each new
 * connection. What is left behind later does not count in the shares of connections that were there before. They keep
 * what they would have beside a connection that stays, since a peer that leaves must not be able to harm them more than
 * one that stays.
 *
 * <p>The counts assume that what was left behind first also ends first. So one number, the mark, says what a connection
 * has found: it is the number of tasks that had been left behind before the connection came. Thread-safe.
 */
public final class OrphanedWork {
    /** Mark of a connection that is gone: everything that still runs counts for it, including its own tasks. */
    public static final long ALL = Long.MAX_VALUE;

    /** Number of tasks that have ever been left behind. */
    private final AtomicLong leftBehind = new AtomicLong();

    /** Number of tasks that were left behind and have ended, or do not wait any more. */
    private final AtomicLong ended = new AtomicLong();

    private final AtomicLong running = new AtomicLong();

    /** Returns the mark that a connection which comes now has to keep: see {@link #runningOf}. */
    public long mark() {
        return leftBehind.get();
    }

    /** Called when a connection is gone that has {@code runs} tasks running and {@code waits} tasks waiting. */
    public void leave(long runs, long waits) {
        running.addAndGet(runs);
        leftBehind.addAndGet(runs + waits);
    }

    /** Called when a waiting task that was left behind begins to run. */
    public void begin() {
        running.incrementAndGet();
    }

    /** Called when a task that was left behind has run and has ended. */
    public void end() {
        running.decrementAndGet();
        ended.incrementAndGet();
    }

    /** Called when {@code waited} tasks that were left behind do not wait any more and will not run. */
    public void drop(long waited) {
        ended.addAndGet(waited);
    }

    /**
     * Returns the largest mark with which a connection has nothing left behind in its share: all that it had found has
     * ended, or does not wait any more.
     */
    public long ended() {
        return ended.get();
    }

    /**
     * Returns the smallest mark with which a connection has everything in its share that was left behind and runs. It
     * never decreases.
     */
    public long allFrom() {
        return ended.get() + running.get();
    }

    /** Returns how many tasks run of those that had been left behind when a connection with this mark came. */
    public long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
