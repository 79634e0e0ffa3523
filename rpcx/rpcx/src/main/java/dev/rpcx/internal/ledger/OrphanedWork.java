package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the orphaned tasks of one address, that is, those that still run or wait after their connections have gone.
 * {@code Ledger.Address} says what the tasks are. While these tasks run, they count in the shares of later connections
 * of the address, so that a caller cannot get a fresh share by connecting again.
 *
 * <p>Each connection has a mark: the number of tasks that had been orphaned at its address when the connection came.
 * Only these tasks count in the connection's share, so a connection that closes later does not reduce the shares of
 * connections that exist. This class assumes that tasks end in the order in which they were orphaned.
 *
 * <p>This class is thread-safe. Which threads use an object depends on what it counts:
 *
 * <ul>
 *   <li>Handlers: the event loops of the address's connections and, after the end of an event loop, any thread that
 *       holds the connection's lock.
 *   <li>Threads of a pool: threads that hold the lock of {@code PoolShares}. Only the mark of a new connection is read
 *       without this lock.
 * </ul>
 *
 * <p>So the threads that count handlers have no common lock. For a moment, a method that reads two counts can then
 * return a number that is wrong by some tasks.
 */
public final class OrphanedWork {
    /**
     * Mark of a connection that has gone. It replaces the number that {@link #mark} returned when the connection came.
     * With this mark, all running orphaned tasks of the address count in the connection's share, including the tasks of
     * this connection itself.
     */
    public static final long ALL = Long.MAX_VALUE;

    /** Number of tasks that have been orphaned so far. */
    private final AtomicLong orphaned = new AtomicLong();

    /** Number of orphaned tasks that have ended or will never run. */
    private final AtomicLong ended = new AtomicLong();

    /** Number of orphaned tasks that run now. */
    private final AtomicLong running = new AtomicLong();

    /**
     * Returns the number of tasks that have been orphaned so far. A new connection keeps this number as its mark, for
     * {@link #runningOf}.
     */
    public long mark() {
        return orphaned.get();
    }

    /**
     * Adds orphaned tasks. Called when a connection is gone, and for each later task that such a connection gets.
     *
     * @param runs number of the connection's tasks that are running
     * @param waits number of the connection's tasks that are waiting
     */
    public void add(long runs, long waits) {
        running.addAndGet(runs);
        orphaned.addAndGet(runs + waits);
    }

    /** Called when a waiting orphaned task begins to run. */
    public void begin() {
        running.incrementAndGet();
    }

    /** Called when an orphaned task that counts as running has ended, or does not start after all. */
    public void end() {
        running.decrementAndGet();
        ended.incrementAndGet();
    }

    /** Called when {@code waited} waiting orphaned tasks have been dropped and will never run. */
    public void drop(long waited) {
        ended.addAndGet(waited);
    }

    /**
     * Returns the number of orphaned tasks that have ended or will never run. A connection's {@link #mark} is the
     * number of tasks that had been orphaned before the connection came. If the mark is at most the returned number,
     * all these tasks are over, and none of them counts in the connection's share.
     */
    public long ended() {
        return ended.get();
    }

    /**
     * Returns the number of orphaned tasks that do not wait any more: those that run, that have ended, or that will
     * never run. If a connection's {@link #mark} is at least this number, all running orphaned tasks count in the
     * connection's share. The result never decreases for a caller that holds the lock of {@code PoolShares}.
     */
    public long allFrom() {
        return ended.get() + running.get();
    }

    /**
     * Returns how many of the orphaned tasks that run now count in the share of a connection. Only tasks that had been
     * orphaned when the connection came can count. For example, if there were 5 such tasks, and 2 of them have ended,
     * at most 3 running tasks count.
     *
     * @param mark number of tasks that had been orphaned when the connection came: see {@link #mark}
     */
    public long runningOf(long mark) {
        if (mark == 0) {
            return 0;
        }
        long before = mark - ended.get();
        return before <= 0 ? 0 : Math.min(before, running.get());
    }
}
