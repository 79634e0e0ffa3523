package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the work of one address that still runs or waits after the connections that began it are gone. The work
 * consists of handlers, or of tasks that have a thread or wait for one. When a new connection comes, some work may have
 * been left behind already. This work counts in the share of the new connection until the work has ended. The reason is
 * that it may be the work of the same caller, who would otherwise get a fresh share with each new connection. Work that
 * is left behind later does not count in the shares of connections that exist already. The existing connections keep
 * the shares that they would have if the connection that is gone had stayed. So a peer cannot harm them more by leaving
 * than by staying.
 *
 * <p>This class assumes that the tasks which were left behind first also end first. So one number for each connection,
 * its mark, says which tasks count in its share. The mark is the number of tasks that had ever been left behind before
 * the connection came. Those tasks count, and later ones do not. Thread-safe.
 */
public final class OrphanedWork {
    /**
     * Mark that a connection gets when it is gone. From then on, all tasks that were left behind and still run count in
     * its share. This includes the tasks that it has left behind itself.
     */
    public static final long ALL = Long.MAX_VALUE;

    /** Number of tasks that have ever been left behind. */
    private final AtomicLong leftBehind = new AtomicLong();

    /** Number of tasks that were left behind and have ended, or do not wait any more. */
    private final AtomicLong ended = new AtomicLong();

    private final AtomicLong running = new AtomicLong();

    /**
     * Returns the mark for a connection that comes now: the number of tasks that have ever been left behind. The
     * connection keeps this number, and passes it to {@link #runningOf}.
     */
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

    /** Called when {@code waited} tasks that were left behind do not wait any more and will not run. */
    public void drop(long waited) {
        ended.addAndGet(waited);
    }

    /**
     * Returns the largest {@link #mark} for which the following holds: no task counts in the share of a connection with
     * this mark. Then all tasks that had been left behind before that connection came have ended, or do not wait any
     * more.
     */
    public long ended() {
        return ended.get();
    }

    /**
     * Returns the smallest {@link #mark} of a connection with which all tasks that were left behind and run now count
     * in the connection's share. The result never decreases.
     */
    public long allFrom() {
        return ended.get() + running.get();
    }

    /**
     * Returns how many tasks that are running now count in the share of a connection with this {@link #mark}. These are
     * tasks that had been left behind before that connection came.
     */
    public long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
