package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the tasks of one address that still run or wait after their connections are gone. {@code Ledger.Address} says
 * what the tasks are. Tasks that were left behind before a new connection came count in the share of that connection
 * until they end. Otherwise a caller could get a fresh share with each new connection. Tasks that are left behind later
 * do not count in the shares of existing connections, so a peer harms these no more by leaving than by staying.
 *
 * <p>The mark of a connection is the number of tasks that had ever been left behind when the connection came. These
 * tasks count in its share. This class assumes that tasks end in the order in which they were left behind. Thread-safe.
 */
public final class OrphanedWork {
    /**
     * Mark of a connection that is gone: all tasks that were left behind and still run count in its share, its own
     * included.
     */
    public static final long ALL = Long.MAX_VALUE;

    /** Number of tasks that have ever been left behind. */
    private final AtomicLong leftBehind = new AtomicLong();

    /** Number of tasks that were left behind and have ended, or do not wait any more. */
    private final AtomicLong ended = new AtomicLong();

    private final AtomicLong running = new AtomicLong();

    /** Returns the mark of a connection that comes now, for {@link #runningOf}. */
    public long mark() {
        return leftBehind.get();
    }

    /** Called when a connection is gone, and has left {@code runs} running and {@code waits} waiting tasks behind. */
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

    /** Called when {@code waited} waiting tasks that were left behind will not run any more. */
    public void drop(long waited) {
        ended.addAndGet(waited);
    }

    /** Returns the largest {@link #mark} with which no task counts in a connection's share. */
    public long ended() {
        return ended.get();
    }

    /**
     * Returns the smallest {@link #mark} with which all running tasks that were left behind count in a connection's
     * share. Never decreases.
     */
    public long allFrom() {
        return ended.get() + running.get();
    }

    /** Returns how many running tasks count in the share of a connection with this {@link #mark}. */
    public long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
