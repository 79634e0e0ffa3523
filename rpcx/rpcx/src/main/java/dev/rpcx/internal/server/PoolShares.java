package dev.rpcx.internal.server;

import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.OrphanedWork;
import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Shares the threads of a pool among connections. A connection may begin another task if a thread is free and the
 * connection holds at most as many threads as are free. {@link AdmissionLimit} has a similar rule, but here the rule
 * also limits a connection that is alone: it gets at most 51 of 100 threads. All other tasks wait: the tasks of one
 * connection begin in the order in which they came, and the connections follow each other in rotation. Thread-safe.
 *
 * <p>When a connection closes, its tasks that still run or wait are orphaned. While such tasks run, they count in the
 * shares of connections that come later from the same address: see {@link OrphanedWork}. So a client does not get more
 * threads by connecting again.
 *
 * <p>Connections with waiting tasks stand in queues. For example, the queue with the number 3 is for connections in
 * whose shares 3 threads count. If 5 threads are free, the connections in the queues 0 to 5 may begin a task, and the
 * connection among them that is first in the rotation begins the next task.
 *
 * <p>An entry of a queue stands for a group of connections of one address. Either all of them may begin a task, or none
 * may. So few entries move when a task of a closed connection begins or ends, however many connections wait: see
 * {@code Crowd}.
 *
 * <p>Two failures can keep a waiting task from beginning:
 *
 * <ul>
 *   <li>No thread can be started for the task. A {@link #patient} pool then sets a timer and tries again later.
 *   <li>Memory is lacking to take the task from the waiting tasks. No pool sets a timer for this failure.
 * </ul>
 *
 * <p>If no timer is set, all waiting tasks wait for the end of a running task, or are refused if no task runs.
 *
 * <p>To keep all counts right when memory is lacking, memory is allocated before a task is counted and before a
 * connection moves to another queue. There is one exception: {@code changeOrphanedWork} may allocate memory while it
 * moves entries.
 */
public final class PoolShares {
    /** Runs tasks on the threads that the connections share. */
    @FunctionalInterface
    public interface Pool {
        /**
         * Runs {@code run} on a thread at once, or throws. A {@code PoolShares} object never has more runs in progress
         * than its maximum number of threads. A run that has no more task and is about to return does not count.
         */
        void run(EventLoop loop, Runnable run);
    }

    /** Task that a connection wants to run on a thread of the pool, for example a call's handler. */
    public interface Task extends Runnable {
        /**
         * Called instead of {@code run} if no thread can be started for the task, and the task cannot wait for a
         * thread. {@code Share.run} has accepted the task, but may not have returned yet. Any thread may call this
         * method.
         *
         * @param noThread why no thread can be started
         */
        void refused(Throwable noThread);
    }

    /**
     * A connection's set of waiting tasks is large if it has held more than this number of tasks. To save memory, a
     * large set is replaced by a smaller one when at most 16 tasks, a quarter of this number, still wait.
     */
    private static final int MAX_KEPT = 64;

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final int maxThreads;
    private final boolean isPatient;
    private final Pool pool;
    private final Function<Ledger.Address, OrphanedWork> orphanedWorkAt;

    // The lock of this object guards the fields from here to the constructor.
    private int running;

    /**
     * Connections with waiting tasks, grouped by address. The key is the {@link OrphanedWork} of the address. A
     * connection without an address is alone in its group, and its {@link Share} is the key.
     */
    private final Map<Object, Neighbours> neighbours = new HashMap<>();

    /**
     * Queues of connections with waiting tasks. The index of a queue is the number of threads that count in the share
     * of each connection in the queue. These threads count:
     *
     * <ul>
     *   <li>For an open connection: the threads that run its own tasks, and the threads that run tasks which had been
     *       orphaned at the same address before the connection came.
     *   <li>For a closed connection with an address: the threads that run tasks of any closed connection of the
     *       address.
     *   <li>For a closed connection without an address: the threads that run its own tasks.
     * </ul>
     */
    private final List<IndexedHeap<QueueEntry>> byHeld = new ArrayList<>();

    /** Indexes in {@link #byHeld} of the queues that are not empty. */
    private final BitSet waitingAt = new BitSet();

    private int waitingConnections;
    private long queueJoins;

    /**
     * Value of {@code order} for the next share that goes behind all other shares. Connections begin tasks in rotation,
     * and the share with the smallest {@code order} is the first.
     */
    private long nextOrder;

    /**
     * Whether a thread could not be started, so that tasks may wait although the shares of their connections allow them
     * to begin.
     */
    private boolean isShortOfThreads;

    /** Whether a timer is set. When the timer expires, the pool tries again to start threads. */
    private boolean isRetryPlanned;

    private boolean isClosed;

    /**
     * Creates shares of a pool that is not {@link #patient}: if no thread can be started and no task of the pool runs,
     * the pool refuses all waiting tasks.
     *
     * @param maxThreads maximum number of threads that run tasks at the same time
     * @param pool runs tasks on its threads
     * @param orphanedWorkAt returns, for an address, the counts of the orphaned tasks in this pool; only this object
     *     may change these counts
     */
    public PoolShares(int maxThreads, Pool pool, Function<Ledger.Address, OrphanedWork> orphanedWorkAt) {
        this(maxThreads, false, pool, orphanedWorkAt);
    }

    /**
     * Creates shares of a pool for tasks that should not be refused, because other tasks may depend on them. If no
     * thread can be started for a task, the task waits, and the pool tries again every 10 ms. Even so, an open pool
     * refuses tasks in these cases:
     *
     * <ul>
     *   <li>If memory is lacking to let a task wait, that task is refused.
     *   <li>If no timer can be set, or memory is lacking to take a waiting task, all waiting tasks are refused, unless
     *       a task runs.
     * </ul>
     *
     * <p>The parameters are those of the public constructor.
     */
    public static PoolShares patient(int maxThreads, Pool pool, Function<Ledger.Address, OrphanedWork> orphanedWorkAt) {
        return new PoolShares(maxThreads, true, pool, orphanedWorkAt);
    }

    private PoolShares(
            int maxThreads, boolean isPatient, Pool pool, Function<Ledger.Address, OrphanedWork> orphanedWorkAt) {
        this.maxThreads = maxThreads;
        this.isPatient = isPatient;
        this.pool = pool;
        this.orphanedWorkAt = orphanedWorkAt;
    }

    /** Creates the share of a new connection. */
    public Share share(EventLoop loop, Account account) {
        return new Share(loop, account.address == null ? null : orphanedWorkAt.apply(account.address));
    }

    /** Returns the number of connections that have waiting tasks. For tests. */
    public synchronized int waitingConnections() {
        return waitingConnections;
    }

    /**
     * Returns how often an entry has been put into a queue or into a {@code Crowd} since this object was created. For
     * tests, which check that few entries move.
     */
    public synchronized long queueJoins() {
        return queueJoins;
    }

    /**
     * Closes the pool, and removes all waiting tasks. After that, {@code Share.run} throws.
     *
     * @return the tasks that were waiting; the pool will not run them
     */
    public synchronized List<Task> close() {
        isClosed = true;
        return takeAll();
    }

    private List<Task> takeAll() {
        List<Task> taken = new ArrayList<>();
        List<Share> all = new ArrayList<>();
        neighbours.values().forEach(ofAddress -> ofAddress.byMark.values().forEach(each -> each.addShares(all)));
        // The list is completed before any task is removed. So no task is lost if there is no memory for the list.
        all.forEach(share -> taken.addAll(share.waiting()));
        for (Share share : all) {
            share.dropped(share.waiting().size());
            share.waiting().clear();
            share.removeFromLevel();
        }
        return taken;
    }

    /**
     * Returns the share of the connection whose waiting task has to begin next; null if no waiting task may begin.
     * Called while holding the lock.
     */
    private @Nullable Share next() {
        int free = maxThreads - running;
        if (free <= 0) {
            return null;
        }
        QueueEntry next = null;
        for (int held = waitingAt.nextSetBit(0); held >= 0 && held <= free; held = waitingAt.nextSetBit(held + 1)) {
            QueueEntry first = queue(held).first();
            if (first != null && (next == null || first.order < next.order)) {
                next = first;
            }
        }
        return next == null ? null : next.first();
    }

    private IndexedHeap<QueueEntry> queue(int held) {
        while (held >= byHeld.size()) {
            // Setting the bit once makes the bit set large enough for this index, so that setting the bit later needs
            // no memory.
            waitingAt.set(byHeld.size());
            waitingAt.clear(byHeld.size());
            byHeld.add(new IndexedHeap<>());
        }
        return byHeld.get(held);
    }

    private @Nullable ThreadRun nextRun() {
        Share next = next();
        if (next == null) {
            return null;
        }
        // The ThreadRun is created before the task is taken from the waiting tasks. If there were no memory for the
        // ThreadRun afterwards, the taken task would be lost.
        ThreadRun run = new ThreadRun(next);
        run.task = next.take();
        return run;
    }

    /**
     * Begins all waiting tasks that may begin, each on its own thread. This method throws nothing, because the tasks
     * may belong to other connections than the caller's.
     *
     * @param first runs the first task, which has already been taken from the waiting tasks; null if this method has to
     *     look for the first task
     */
    private void beginWaiting(@Nullable ThreadRun first) {
        ThreadRun run = first;
        while (true) {
            if (run == null) {
                try {
                    synchronized (this) {
                        isShortOfThreads = false;
                        run = nextRun();
                    }
                } catch (Throwable noMemory) {
                    refuseWaitingUnlessRunning(noMemory);
                    return;
                }
                if (run == null) {
                    return;
                }
            }
            Throwable noThread = run.begin();
            if (noThread != null) {
                waitOn(run, noThread);
                return;
            }
            run = null;
        }
    }

    private void waitOn(ThreadRun run, Throwable noThread) {
        Task task = Objects.requireNonNull(run.task);
        Share share = Objects.requireNonNull(run.share);
        try {
            synchronized (this) {
                share.add(task);
            }
        } catch (Throwable noMemory) {
            refuse(task, noThread);
        }
        if (!isPatient || !retryLater(share.loop)) {
            refuseWaitingUnlessRunning(noThread);
        }
    }

    /**
     * Sets a timer after which the pool tries again to start threads, unless such a timer is set already. The timer is
     * needed even while a task runs, because that task may block for a long time.
     *
     * @return false if the pool will not try again, because the pool is closed or no timer can be set
     */
    private boolean retryLater(EventLoop loop) {
        synchronized (this) {
            isShortOfThreads = true;
            if (isClosed) {
                return false;
            }
            if (isRetryPlanned) {
                return true;
            }
            isRetryPlanned = true;
        }
        try {
            loop.schedule(this::retry, RETRY_NANOS, TimeUnit.NANOSECONDS);
            return true;
        } catch (Throwable noTimer) {
            synchronized (this) {
                isRetryPlanned = false;
            }
            return false;
        }
    }

    private void retry() {
        synchronized (this) {
            isRetryPlanned = false;
        }
        beginWaiting(null);
    }

    /**
     * Refuses all waiting tasks if no task runs. Otherwise the tasks go on waiting for the threads that run, each of
     * which looks for another task when its own task has ended. Called when no thread can be started or when memory is
     * lacking.
     */
    private void refuseWaitingUnlessRunning(Throwable noThread) {
        List<Task> refused = List.of();
        try {
            synchronized (this) {
                isShortOfThreads = true;
                if (running == 0) {
                    refused = takeAll();
                    isShortOfThreads = false;
                }
            }
        } catch (Throwable noMemory) {
            // Usually memory was lacking for the list that takeAll() returns. In this case, all tasks still wait, and
            // the next thread that looks for a task finds them.
            ThreadTools.report(noMemory);
        }
        for (Task task : refused) {
            refuse(task, noThread);
        }
    }

    private static void refuse(Task task, Throwable noThread) {
        try {
            task.refused(noThread);
        } catch (Throwable t) {
            ThreadTools.report(t);
        }
    }

    /**
     * Changes the counts of the orphaned tasks of an address. The queue of a waiting connection depends on these
     * counts, so this method also moves the waiting connections of the address to the right queues.
     */
    private void changeOrphanedWork(OrphanedWork orphanedWork, Consumer<OrphanedWork> change) {
        Neighbours all = neighbours.get(orphanedWork);
        if (all == null) {
            change.accept(orphanedWork);
        } else {
            all.change(orphanedWork, change);
        }
    }

    /**
     * Entry in one of the queues of {@link #byHeld}. The entry stands for one or more connections with waiting tasks.
     * The same number of threads counts in the share of each of these connections. So either all of these connections
     * may begin a task, or none may.
     */
    private abstract class QueueEntry extends IndexedHeap.Entry {
        private static final int NOWHERE = -1;

        /**
         * Index in {@link #byHeld} of the queue that contains this entry; {@link #NOWHERE} if no queue contains the
         * entry. The index is stored because {@link #held} does not tell whether a queue contains the entry.
         */
        private int standsAt = NOWHERE;

        /**
         * Returns the number of threads that count in the share of each connection of this entry. The number is the
         * index in {@link #byHeld} of the queue for these connections.
         */
        abstract int held();

        /**
         * Among the shares of the waiting connections of this entry, returns the share with the smallest {@code order},
         * which is the first in the rotation. Returns null if no connection of this entry waits.
         */
        abstract @Nullable Share first();

        /**
         * Removes this entry from its queue; does nothing if the entry is in no queue. Must be called before the result
         * of {@link #held} or of {@link #first} changes.
         */
        final void removeFromQueue() {
            if (standsAt != NOWHERE) {
                IndexedHeap<QueueEntry> queue = queue(standsAt);
                queue.remove(this);
                if (queue.isEmpty()) {
                    waitingAt.clear(standsAt);
                }
                standsAt = NOWHERE;
            }
        }

        /**
         * Makes room in the queue that this entry will join, so that {@link #joinQueue} needs no memory. The room lasts
         * until another entry joins that queue. If the result of {@link #held} changes, this entry will join another
         * queue, in which no room has been made.
         */
        final void makeRoomInQueue() {
            queue(held()).makeRoom();
        }

        final void joinQueue() {
            Share first = first();
            if (first != null) {
                order = first.order;
                int held = held();
                queue(held).add(this);
                standsAt = held;
                queueJoins++;
                waitingAt.set(held);
            }
        }
    }

    /**
     * The connections of one address that have waiting tasks. A connection without an address has an object of this
     * class for itself.
     */
    private final class Neighbours {
        /**
         * The waiting connections of the address, grouped by mark. The mark of a connection is the number of tasks that
         * had been orphaned at the address when the connection came. The number includes tasks that have ended. For
         * example, the mark is 10 if 10 tasks had been orphaned, even if 7 of them have ended. When the connection
         * closes, its mark becomes {@link OrphanedWork#ALL}.
         */
        private final TreeMap<Long, Peers> byMark = new TreeMap<>();

        /**
         * The {@link Crowd} objects of the address, that is, groups of waiting connections. The index of a crowd is the
         * number of threads that each connection of the crowd holds. Closed connections that still have waiting tasks
         * are in the crowd with the index 0. An element is null if no crowd has been needed for that number yet.
         */
        private final List<@Nullable Crowd> crowds = new ArrayList<>();

        private final @Nullable OrphanedWork orphanedWork;

        Neighbours(@Nullable OrphanedWork orphanedWork) {
            this.orphanedWork = orphanedWork;
        }

        private Crowd crowd(int own) {
            while (own >= crowds.size()) {
                crowds.add(null);
            }
            Crowd found = crowds.get(own);
            if (found == null) {
                found = new Crowd(Objects.requireNonNull(orphanedWork), own);
                crowds.set(own, found);
            }
            return found;
        }

        /**
         * Changes the counts of the orphaned tasks of the address, and moves the waiting connections whose queues
         * depend on these counts. A connection has a mark, which says how many of the running orphaned tasks count in
         * its share. The mark decides how the connection is moved:
         *
         * <ul>
         *   <li>The mark is at least {@link OrphanedWork#allFrom}, and not 0. All running orphaned tasks count in the
         *       connection's share. The connection is in a {@link Crowd}, and each crowd is moved as one entry.
         *   <li>The mark is between {@link OrphanedWork#ended} and {@code allFrom}. Some of the running orphaned tasks
         *       count in the connection's share. The connection is moved with its {@link Level}, one level at a time.
         *   <li>The mark is any other number, such as 0. No orphaned task counts in the connection's share, so the
         *       connection is not moved.
         * </ul>
         *
         * <p>If {@code allFrom} has increased, connections whose marks are now below it leave their crowds. Since
         * {@code allFrom} never decreases, such a connection never comes back to a crowd while the connection is open.
         * A closed connection is in a crowd, because its mark is {@link OrphanedWork#ALL}.
         */
        private void change(OrphanedWork of, Consumer<OrphanedWork> change) {
            long before = of.allFrom();
            Collection<Peers> moved = before <= of.ended()
                    ? List.of()
                    : byMark.subMap(of.ended(), false, before, false).values();
            moved.forEach(Peers::removeFromCrowdsOrQueues);
            for (Crowd each : crowds) {
                if (each != null) {
                    each.removeFromQueue();
                }
            }
            change.accept(of);
            for (Crowd each : crowds) {
                if (each != null) {
                    each.joinQueue();
                }
            }
            moved.forEach(Peers::joinCrowdsOrQueues);
            long now = of.allFrom();
            if (now > before) {
                byMark.subMap(before, true, now, false).values().forEach(Peers::moveOutOfCrowds);
            }
        }
    }

    /**
     * Waiting connections of one address that hold equally many threads, and in whose shares all running orphaned tasks
     * of the address count. The crowd stands in a queue as one entry. So when an orphaned task begins or ends, usually
     * only this entry moves.
     *
     * <p>A task that is orphaned after an open connection has come does not count in the share of that connection. When
     * such a task begins or will never run, the connection moves out of the crowd: see {@link Peers#moveOutOfCrowds}.
     */
    private final class Crowd extends QueueEntry {
        private final OrphanedWork orphanedWork;
        private final int own;
        private final IndexedHeap<Level> levels = new IndexedHeap<>();

        Crowd(OrphanedWork orphanedWork, int own) {
            this.orphanedWork = orphanedWork;
            this.own = own;
        }

        /**
         * Makes room for one more {@link Level} in this crowd, and for this crowd in the queue that it will join. So
         * {@link #add} needs no memory. The room lasts until another entry joins that queue. If the result of
         * {@link #held} changes, the crowd will join another queue, in which no room has been made.
         */
        void makeRoom() {
            levels.makeRoom();
            makeRoomInQueue();
        }

        void add(Level level) {
            removeFromQueue();
            levels.add(level);
            joinQueue();
        }

        void remove(Level level) {
            removeFromQueue();
            levels.remove(level);
            joinQueue();
        }

        @Override
        int held() {
            return own + (int) orphanedWork.runningOf(OrphanedWork.ALL);
        }

        @Override
        @Nullable
        Share first() {
            Level first = levels.first();
            return first == null ? null : first.first();
        }
    }

    /**
     * Connections of one address that have waiting tasks and the same mark. The mark of a connection is the number of
     * tasks that had been orphaned at the address when the connection came, or {@link OrphanedWork#ALL} if the
     * connection has closed. The mark determines which running tasks of closed connections count in the share of the
     * connection. So the shares of all connections with the same mark count the same tasks of closed connections.
     */
    private final class Peers {
        private final Object key;
        private final Neighbours among;

        /**
         * Key of this object in {@link Neighbours#byMark}. The key is kept as a {@code Long} object, so that removing
         * the key from the map needs no memory.
         */
        private final Long mark;

        /**
         * The waiting connections, in groups. The index of a group is the number of threads that each connection of the
         * group holds. The index is 0 for a closed connection that has an address and still has waiting tasks, because
         * its running tasks count as orphaned at the address instead. An element is null if no connection has waited
         * yet while it held that number of threads.
         */
        private @Nullable Level[] byOwn = new Level[1];

        /**
         * Whether each group of {@link #byOwn} belongs to a {@link Crowd}. If true, only the crowd stands in a queue of
         * {@link #byHeld}, as one entry. If false, each group stands in a queue as its own entry.
         */
        private boolean isOfCrowds;

        /** Number of connections of this object that have waiting tasks. */
        private int waiting;

        Peers(Share one, Neighbours among) {
            this.key = one.key();
            this.among = among;
            this.mark = one.mark;
            this.isOfCrowds = among.orphanedWork != null && mark > 0 && mark >= among.orphanedWork.allFrom();
        }

        private int found() {
            return among.orphanedWork == null ? 0 : (int) among.orphanedWork.runningOf(mark);
        }

        private Level level(int own) {
            if (own >= byOwn.length) {
                byOwn = Arrays.copyOf(byOwn, Math.max(own + 1, 2 * byOwn.length));
            }
            Level found = byOwn[own];
            if (found == null) {
                found = byOwn[own] = new Level(this, own);
            }
            return found;
        }

        void removeFromCrowdsOrQueues() {
            for (Level each : byOwn) {
                if (each != null) {
                    each.removeFromCrowdOrQueue();
                }
            }
        }

        void joinCrowdsOrQueues() {
            for (Level each : byOwn) {
                if (each != null) {
                    each.joinCrowdOrQueue();
                }
            }
        }

        /**
         * Moves each group of {@link #byOwn} out of its {@link Crowd}, so that the group becomes an entry of a queue
         * itself. Called when a task that was orphaned after these connections had come has begun or will never run, by
         * the counts of {@link OrphanedWork}. While such a task runs, it counts in the shares of the crowd, but not in
         * the shares of these connections, so they no longer fit the crowd.
         */
        void moveOutOfCrowds() {
            removeFromCrowdsOrQueues();
            isOfCrowds = false;
            joinCrowdsOrQueues();
        }

        void countWaiting(int more) {
            waiting += more;
            waitingConnections += more;
            if (waiting == 0) {
                among.byMark.remove(mark);
                if (among.byMark.isEmpty()) {
                    neighbours.remove(key);
                }
            }
        }

        void addShares(List<Share> all) {
            for (Level each : byOwn) {
                if (each != null) {
                    each.shares.forEach(all::add);
                }
            }
        }
    }

    /**
     * Waiting connections of one {@link Peers} object that hold equally many threads. All connections of a
     * {@code Peers} object have the same address and the same mark. So the same number of threads counts in the share
     * of each connection of a level.
     */
    private final class Level extends QueueEntry {
        private final Peers of;
        private final int own;
        private final IndexedHeap<Share> shares = new IndexedHeap<>();

        Level(Peers of, int own) {
            this.of = of;
            this.own = own;
        }

        /**
         * Makes room so that {@link #add} needs no memory: for one more share in this level, and for this level in the
         * queue that it will join. If the level belongs to a {@link Crowd}, room is made for the level in the crowd
         * instead, and for the crowd in its queue. The room lasts until another entry joins that queue. If the result
         * of {@link #held} changes, the level or its crowd will join another queue, in which no room has been made.
         */
        void makeRoom() {
            shares.makeRoom();
            if (of.isOfCrowds) {
                of.among.crowd(own).makeRoom();
            } else {
                makeRoomInQueue();
            }
        }

        void add(Share share) {
            removeFromCrowdOrQueue();
            shares.add(share);
            joinCrowdOrQueue();
        }

        void remove(Share share) {
            removeFromCrowdOrQueue();
            shares.remove(share);
            joinCrowdOrQueue();
        }

        @Override
        int held() {
            return own + of.found();
        }

        @Override
        @Nullable
        Share first() {
            return shares.first();
        }

        /**
         * Removes this group of connections from its {@link Crowd}, or from its queue if the group belongs to no crowd.
         * Must be called before the result of {@link #held} or of {@link #first} changes.
         */
        private void removeFromCrowdOrQueue() {
            if (!of.isOfCrowds) {
                removeFromQueue();
            } else if (!shares.isEmpty()) {
                of.among.crowd(own).remove(this);
            }
        }

        private void joinCrowdOrQueue() {
            Share first = shares.first();
            if (!of.isOfCrowds) {
                joinQueue();
            } else if (first != null) {
                order = first.order;
                queueJoins++;
                of.among.crowd(own).add(this);
            }
        }
    }

    /**
     * Share of one connection in the pool: the threads that the connection holds, and its tasks that wait for a thread.
     */
    public final class Share extends IndexedHeap.Entry {
        private final EventLoop loop;

        /** Counts of the orphaned tasks of this connection's address; null if this connection has no address. */
        private final @Nullable OrphanedWork orphanedWork;

        // The lock of the PoolShares object guards the fields from here to the constructor.
        private int own;
        private @Nullable LinkedHashSet<Task> waiting;

        /**
         * Largest number of tasks that the set {@link #waiting} has held since the set was created. If this number is
         * large, a smaller set can save memory.
         */
        private int peakWaiting;

        private boolean isGone;

        /**
         * Number of tasks that had been orphaned at the address when this connection came; {@link OrphanedWork#ALL} if
         * this connection has closed. The number includes tasks that have ended, but {@link OrphanedWork#runningOf}
         * subtracts them. For example, if this number is 10, and 7 of these 10 tasks have ended, at most 3 running
         * orphaned tasks count in this share.
         */
        private long mark;

        /** Group of waiting connections that contains this connection; null while no task of this connection waits. */
        private @Nullable Level among;

        private Share(EventLoop loop, @Nullable OrphanedWork orphanedWork) {
            this.loop = loop;
            this.orphanedWork = orphanedWork;
            this.mark = orphanedWork == null ? 0 : orphanedWork.mark();
        }

        /**
         * Runs a task on a thread of the pool, at once or when the connection may use another thread. A task that still
         * waits must not be given to this method again. If no thread can be started now, a {@link #patient} pool lets
         * the task wait and tries again later. With any other pool, this method throws whatever {@link Pool#run}
         * throws.
         *
         * @throws RejectedExecutionException the pool is closed
         * @throws OutOfMemoryError memory is lacking for the task; or no thread can be started now, and the pool is not
         *     {@link #patient}
         */
        public void run(Task task) {
            ThreadRun run = null;
            boolean isShort;
            synchronized (PoolShares.this) {
                if (isClosed) {
                    throw new RejectedExecutionException("the server has stopped");
                }
                if (isWaiting() || !mayBegin()) {
                    add(task);
                } else {
                    run = new ThreadRun(this);
                    run.task = task;
                    countAsOrphanIfGone();
                    count(1, this.order, null);
                }
                isShort = isShortOfThreads;
            }
            Throwable noThread = run == null ? null : run.begin();
            if (run != null && noThread != null && isPatient && !(noThread instanceof RejectedExecutionException)) {
                waitOn(run, noThread);
                return;
            }
            if (noThread != null || isShort) {
                // Other tasks may wait because this task counted as holding a thread, or because no thread could be
                // started. The pool begins those tasks that are allowed to begin now.
                beginWaiting(null);
            }
            if (noThread instanceof RuntimeException e) {
                throw e;
            } else if (noThread instanceof Error e) {
                throw e;
            }
        }

        /**
         * Takes back a task that still waits for a thread, so that the task will not run.
         *
         * @return false if the task does not wait: it has begun, is about to begin, or has been removed already, for
         *     example because the pool refuses it
         */
        public boolean withdraw(Task task) {
            boolean isOfOthers;
            synchronized (PoolShares.this) {
                if (!isWaiting() || !waiting().remove(task)) {
                    return false;
                }
                shrink();
                dropped(1);
                if (!isWaiting()) {
                    // A share without waiting tasks must not stay in a queue. The queue would keep the share in memory
                    // even after the connection has closed.
                    removeFromLevel();
                }
                isOfOthers = isGone && orphanedWork != null;
            }
            if (isOfOthers) {
                // The removed task counted as orphaned, since its connection has closed. Now that it does not count any
                // more, fewer threads may count in the shares of other connections of the same address. So waiting
                // tasks of these connections may be allowed to begin now.
                beginWaiting(null);
            }
            return true;
        }

        /**
         * Returns whether a task waits although a thread of the pool is free. Usually the task waits because the
         * connection's share allows no more threads at the moment. But the task may also wait because no thread could
         * be started.
         */
        public boolean isBlockedByShare(Task task) {
            synchronized (PoolShares.this) {
                return running < maxThreads && isWaiting() && waiting().contains(task);
            }
        }

        /**
         * Records that the connection has closed. Called exactly once. After that, the connection's running tasks, and
         * its waiting tasks once they run, count in the shares of connections that come later from the same address.
         * The waiting tasks will still run, unless they are withdrawn or refused.
         */
        public void connectionGone() {
            synchronized (PoolShares.this) {
                boolean waits = isWaiting();
                removeFromLevel();
                isGone = true;
                if (orphanedWork != null) {
                    mark = OrphanedWork.ALL;
                    int tasks = waits ? waiting().size() : 0;
                    if (own > 0 || tasks > 0) {
                        changeOrphanedWork(orphanedWork, all -> all.add(own, tasks));
                    }
                }
                if (waits) {
                    joinLevel();
                }
            }
        }

        /**
         * Counts a new task as orphaned at the connection's address, if the connection has closed. The task is counted
         * like those that were still waiting when the connection closed.
         */
        private void countAsOrphanIfGone() {
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, all -> all.add(0, 1));
            }
        }

        /**
         * Records that tasks that were waiting will not run. If the connection has an address and has closed, these
         * tasks count as orphaned at that address, and this method stops counting them. Otherwise, this method does
         * nothing.
         *
         * @param tasks number of the tasks that will not run
         */
        private void dropped(int tasks) {
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, all -> all.drop(tasks));
            }
        }

        private boolean isWaiting() {
            return waiting != null && !waiting.isEmpty();
        }

        /**
         * Replaces the set {@link #waiting} by a smaller set if the set has held more than {@link #MAX_KEPT} tasks, and
         * at most {@code MAX_KEPT / 4} tasks still wait.
         */
        private void shrink() {
            LinkedHashSet<Task> grown = waiting;
            if (grown != null && peakWaiting > MAX_KEPT && grown.size() <= MAX_KEPT / 4) {
                try {
                    waiting = grown.isEmpty() ? null : new LinkedHashSet<>(grown);
                    peakWaiting = grown.size();
                } catch (OutOfMemoryError none) {
                    // There is no memory for the smaller set, so the large set is kept. The next removal of a waiting
                    // task tries again to replace it.
                }
            }
        }

        private LinkedHashSet<Task> waiting() {
            if (waiting == null) {
                waiting = new LinkedHashSet<>();
            }
            return waiting;
        }

        /**
         * Makes a task wait behind the other waiting tasks of its connection. If this method throws, the task does not
         * wait.
         */
        private void add(Task task) {
            countAsOrphanIfGone();
            boolean isAdded = false;
            try {
                waiting().add(task);
                peakWaiting = Math.max(peakWaiting, waiting().size());
                if (among == null) {
                    order = nextOrder++;
                    joinLevel();
                }
                isAdded = true;
            } finally {
                if (!isAdded) {
                    dropped(1);
                    waiting().remove(task);
                }
            }
        }

        private Object key() {
            return orphanedWork == null ? this : orphanedWork;
        }

        private Peers peers() {
            Neighbours among = neighbours.computeIfAbsent(key(), key -> new Neighbours(orphanedWork));
            return among.byMark.computeIfAbsent(mark, found -> new Peers(this, among));
        }

        private void joinLevel() {
            Peers of = peers();
            Level level = of.level(ofItself());
            level.makeRoom();
            level.add(this);
            among = level;
            of.countWaiting(1);
        }

        private void removeFromLevel() {
            Level before = among;
            if (before != null) {
                before.remove(this);
                among = null;
                before.of.countWaiting(-1);
            }
        }

        /**
         * Returns the number of threads that count as the connection's own. After a connection with an address has
         * closed, the result is 0, because its tasks count as orphaned at the address instead. Tasks of a connection
         * without an address count as the connection's own even after it has closed.
         */
        private int ofItself() {
            return isGone && orphanedWork != null ? 0 : own;
        }

        private boolean mayBegin() {
            int free = maxThreads - running;
            return free > 0 && ofItself() + (orphanedWork == null ? 0 : orphanedWork.runningOf(mark)) <= free;
        }

        /**
         * Removes the first waiting task of the connection, and counts that task as running. The connection goes to the
         * end of the rotation.
         */
        private Task take() {
            Iterator<Task> first = waiting().iterator();
            Task task = first.next();
            Level now = first.hasNext() ? levelAfter(1) : null;
            first.remove();
            shrink();
            if (now == null) {
                removeFromLevel();
            }
            count(1, now == null ? order : nextOrder++, now);
            return task;
        }

        /**
         * Counts a task of this connection as ended, and the task's thread as free. If the connection has waiting
         * tasks, it moves to the {@link Level} for the threads that it now holds. If there is no memory for the move,
         * the connection stays in its present level, as if it still held the thread of the ended task. Its waiting
         * tasks may then begin later.
         */
        private void ended() {
            Level now = among;
            try {
                now = levelAfter(-1);
            } catch (Throwable noMemory) {
                // The share stays in its present level, as if the task still ran, until the next task of the connection
                // begins or ends.
            }
            count(-1, order, now);
        }

        /**
         * Returns the {@link Level} to which the share will belong when a task of the connection has begun or ended.
         * This method makes room in that level, so that the caller can then move the share there without allocating
         * memory.
         *
         * @param begun change in the number of running tasks: 1 if a task begins, -1 if a task ends
         * @return the level; null if no task of the share waits
         */
        private @Nullable Level levelAfter(int begun) {
            Level before = among;
            if (before == null) {
                return null;
            }
            int later = isGone && orphanedWork != null ? 0 : own + begun;
            Level after = before.own == later ? before : before.of.level(later);
            after.makeRoom();
            return after;
        }

        /**
         * Changes the number of running tasks of the connection, and moves the share to another {@link Level}.
         *
         * @param begun change in the number of running tasks: 1 if a task begins, -1 if a task ends
         * @param newOrder new {@code order} of the share, which matters only if a task waits
         * @param now level to which the share will belong; null if no task waits
         */
        private void count(int begun, long newOrder, @Nullable Level now) {
            running += begun;
            Level before = among;
            if (before != null) {
                before.remove(this);
            }
            own += begun;
            order = newOrder;
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, begun > 0 ? OrphanedWork::begin : OrphanedWork::end);
            }
            if (now != null) {
                now.add(this);
                among = now;
            }
        }
    }

    /**
     * Runs tasks on one thread of the pool, as long as there are tasks for the thread.
     *
     * <p>The boolean value of this object is true as soon as the first task has begun or has failed to begin. Usually
     * the thread sets the value, just before it runs the first task. But if {@link Pool#run} throws, a thread may run
     * this object nevertheless. So {@link #begin} then tries to set the value, too:
     *
     * <ul>
     *   <li>If {@code begin} sets the value first, this object runs no task. The first task may wait for another
     *       thread.
     *   <li>If the thread has set the value first, the thread runs the first task.
     * </ul>
     */
    private final class ThreadRun extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        /**
         * Share of the connection whose task the thread runs or is about to run; null if there is no such task. The
         * field is cleared after each task. Otherwise this object would keep the share in memory, and the thread may
         * keep this object for a long time.
         */
        private transient @Nullable Share share;

        private transient @Nullable Task task;

        /**
         * Saved state of the thread, such as the thread's name, which is restored after each task. This object is
         * created before the thread starts, since nothing may fail between the start and the first task.
         */
        private final transient Threads.SavedThreadState savedState = new Threads.SavedThreadState();

        ThreadRun(Share share) {
            this.share = share;
        }

        /**
         * Asks the pool for a thread that runs {@link #task}, and after that other tasks.
         *
         * @return null if a thread runs the task; otherwise the failure, after which the task no longer counts as
         *     running
         */
        @Nullable
        Throwable begin() {
            try {
                pool.run(Objects.requireNonNull(share).loop, this);
                return null;
            } catch (Throwable noThread) {
                if (!compareAndSet(false, true)) {
                    // The pool has thrown, but a thread runs the task nevertheless. So there is no failure to report.
                    return null;
                }
                synchronized (PoolShares.this) {
                    Objects.requireNonNull(share).ended();
                }
                return noThread;
            }
        }

        @Override
        public void run() {
            if (!compareAndSet(false, true)) {
                return;
            }
            savedState.begin();
            do {
                savedState.run(Objects.requireNonNull(task));
            } while (goesOn());
        }

        /**
         * Records that the task of this thread has ended, and takes the next task for this thread. The next task may
         * belong to any connection.
         *
         * @return false if there is no next task, or if memory is lacking to take the next task
         */
        private boolean goesOn() {
            ThreadRun other = null;
            try {
                synchronized (PoolShares.this) {
                    Share last = Objects.requireNonNull(share);
                    share = null;
                    task = null;
                    last.ended();
                    Share next = next();
                    if (next == null) {
                        return false;
                    }
                    task = next.take();
                    share = next;
                    // The connection whose task has ended now holds one thread less. So a second task may be allowed to
                    // begin, on another thread.
                    other = nextRun();
                }
            } catch (Throwable noMemory) {
                refuseWaitingUnlessRunning(noMemory);
                return share != null;
            }
            if (other != null) {
                beginWaiting(other);
            }
            return true;
        }
    }
}
