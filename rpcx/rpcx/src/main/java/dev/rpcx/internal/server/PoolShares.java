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
 * Shares the threads of a pool among connections. A connection may begin another task if it holds at most as many
 * threads as are free, which is the rule of {@link AdmissionLimit}. Other tasks wait. The waiting tasks of one
 * connection begin in the order in which they came, and the connections take turns. Thread-safe.
 *
 * <p>A task whose connection has gone is left behind. The task counts in the shares of connections that come later from
 * the same address: see {@link OrphanedWork}. When a connection comes, it <em>finds</em> the tasks that have been left
 * behind at its address so far.
 *
 * <p>Whether a connection may begin a task depends on two numbers: the number of free threads, and the number of
 * threads that the connection holds plus the number of running tasks that it has found. For each value of the second
 * number, there is a queue of the connections that wait. The next task to begin is that of the connection whose turn
 * comes first in the queues for values up to the number of free threads.
 *
 * <p>An entry of a queue stands for all connections of one address that hold equally many threads and have found the
 * same tasks. Connections of one address that hold equally many threads and have found all running tasks left behind
 * there also share an entry, whenever they came: see {@code Crowd}. So few entries move when a task that was left
 * behind begins or ends, however many connections wait.
 *
 * <p>If no thread can be started for a waiting task, the task waits for the end of a running task. If no task runs, all
 * waiting tasks are refused, or wait until the pool tries again: see {@link #patient}. A lack of memory is handled like
 * a lack of threads. To keep all counts right even then, everything that needs memory is done before a task is counted,
 * and before an entry moves to another queue.
 */
public final class PoolShares {
    /** Runs tasks on the threads that the connections share. */
    @FunctionalInterface
    public interface Pool {
        /**
         * Runs {@code run} on a thread at once, or throws. The caller never has more runs under way than the maximum
         * number of threads that the connections share.
         */
        void run(EventLoop loop, Runnable run);
    }

    /** Task that a connection wants to run on a thread of the pool, for example a call's handler. */
    public interface Task extends Runnable {
        /**
         * Called instead of {@code run} if no thread can be started for the task, and the task cannot wait for one.
         * {@code Share.run} has accepted the task before. Any thread may call this.
         *
         * @param noThread why no thread can be started
         */
        void refused(Throwable noThread);
    }

    /**
     * Number of waiting tasks above which a share's set of these tasks counts as large. A set that has been large is
     * replaced by a smaller one, to save memory, when at most a quarter of this number still wait.
     */
    private static final int MAX_KEPT = 64;

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final int maxThreads;
    private final boolean isPatient;
    private final Pool pool;
    private final Function<Ledger.Address, OrphanedWork> orphanedWorkAt;

    // the next fields are guarded by the lock of this object
    private int running;

    /**
     * Connections with waiting tasks, grouped by address. The key is the {@link OrphanedWork} of the address; a
     * connection without an address has its {@link Share} as the key.
     */
    private final Map<Object, Neighbours> neighbours = new HashMap<>();

    /**
     * Queues of connections with waiting tasks. The index of a queue is the number of threads that each of its
     * connections holds, plus the number of running tasks of gone connections that count in its share.
     */
    private final List<IndexedHeap<QueueEntry>> byHeld = new ArrayList<>();

    /** Indexes of those queues in {@link #byHeld} that are not empty. */
    private final BitSet waitingAt = new BitSet();

    private int waitingConnections;
    private long queueJoins;

    /**
     * Value of {@code order} for the next share that joins the end of the rotation. The share with the smallest order
     * has the first turn.
     */
    private long nextOrder;

    /** Whether starting a thread has failed, so that a task may wait although it is allowed to begin. */
    private boolean isShortOfThreads;

    /** Whether a timer is set after which the pool tries again to start threads. */
    private boolean isRetryPlanned;

    private boolean isClosed;

    /**
     * Creates shares of a pool that refuses its waiting tasks if no thread can be started and no task runs.
     *
     * @param maxThreads maximum number of threads that are in use at the same time
     * @param pool runs tasks on its threads
     * @param orphanedWorkAt returns the counts of the pool's tasks that were left behind at an address, that is, tasks
     *     whose connections have gone; only this object may change these counts
     */
    public PoolShares(int maxThreads, Pool pool, Function<Ledger.Address, OrphanedWork> orphanedWorkAt) {
        this(maxThreads, false, pool, orphanedWorkAt);
    }

    /**
     * Creates shares of a pool for tasks that should not be refused, because other tasks may wait for them. If no
     * thread can be started for a task, the task waits, and the pool tries again every {@code RETRY_NANOS}. The
     * parameters are those of the public constructor.
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
     * Closes the pool, and removes all waiting tasks. From now on, {@code Share.run} throws.
     *
     * @return the tasks that were waiting, which the pool will not run
     */
    public synchronized List<Task> close() {
        isClosed = true;
        return takeAll();
    }

    private List<Task> takeAll() {
        List<Task> left = new ArrayList<>();
        List<Share> all = new ArrayList<>();
        neighbours.values().forEach(ofAddress -> ofAddress.byMark.values().forEach(each -> each.addShares(all)));
        // The list is completed before any task is removed, since there may be no memory for the list.
        all.forEach(share -> left.addAll(share.waiting()));
        for (Share share : all) {
            share.dropped(share.waiting().size());
            share.waiting().clear();
            share.leaveTurn();
        }
        return left;
    }

    /**
     * Returns the share whose task has to begin next; null if no waiting task may begin. Called while holding the lock.
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
            // This gives the bit set room for the index, so that setting the bit later needs no memory.
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
        // The ThreadRun is created before a task is taken: there may be no memory for it, and a task that has been
        // taken has to run.
        ThreadRun run = new ThreadRun(next);
        run.task = next.take();
        return run;
    }

    /**
     * Begins all waiting tasks that may begin, each on its own thread. Throws nothing, since these tasks may belong to
     * other connections than the caller's.
     *
     * @param first run to begin first, whose task no longer waits; null if this method has to find it
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
                    leaveToRunningThreadsOrRefuse(noMemory);
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
            leaveToRunningThreadsOrRefuse(noThread);
        }
    }

    /**
     * Sets a timer after which the pool tries again to start threads, if none is set. The timer is needed even while a
     * task runs, since that task may block for long.
     *
     * @return false if nothing will try again, because the pool is closed or no timer can be set
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
     * Leaves the waiting tasks to the threads that run, each of which looks for another task when its own has ended. If
     * no thread runs, refuses all waiting tasks. Called when no thread can be started or there is no memory.
     */
    private void leaveToRunningThreadsOrRefuse(Throwable noThread) {
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
            // All waiting tasks are still in their queues; the next thread that looks for a task finds them.
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
     * Changes the counts of the tasks that gone connections have left behind at an address. Also moves the waiting
     * connections in whose shares these tasks count to the queues where these connections belong now.
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
     * Entry in one of the queues of {@link #byHeld}. It stands for one or more connections with waiting tasks; either
     * all of them may begin a task, or none may.
     */
    private abstract class QueueEntry extends IndexedHeap.Entry {
        private static final int NOWHERE = -1;

        /**
         * Index in {@link #byHeld} of the queue that contains the entry; {@link #NOWHERE} if none does. It is recorded
         * because {@link #held} may have changed since the entry joined the queue.
         */
        private int standsAt = NOWHERE;

        /**
         * Returns how many threads count in the share of each connection of this entry. These are the threads that the
         * connection holds, and those that run tasks that it has found: see {@link PoolShares}.
         */
        abstract int held();

        /**
         * Returns the share whose turn is first among the connections of this entry; null if none of them waits. This
         * is the share with the lowest order.
         */
        abstract @Nullable Share first();

        /**
         * Removes the entry from its queue, if it is in one. Must be called before {@link #held} or {@link #first}
         * changes.
         */
        final void leaveQueue() {
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
         * until {@link #held} changes or another entry joins that queue.
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
     * Connections of one address that have waiting tasks. A connection without an address has its own object of this
     * class.
     */
    private final class Neighbours {
        /**
         * The waiting connections, by their marks. A connection's mark is the number of tasks that had ever been left
         * behind at the address when the connection came, or {@link OrphanedWork#ALL} if the connection has gone.
         */
        private final TreeMap<Long, Peers> byMark = new TreeMap<>();

        /**
         * Each {@link Crowd} of the address, at the index that is the number of threads that each connection of the
         * crowd holds. An element is null if no crowd has been needed for that number yet.
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
         * Changes the counts of the tasks that were left behind at the address, and moves the waiting connections whose
         * queues depend on these counts.
         *
         * <p>{@link OrphanedWork#allFrom} is the smallest mark with which all running tasks that were left behind count
         * in a connection's share. Waiting connections with at least this mark are in crowds, except with the mark 0:
         * see {@link Crowd}. The value never decreases, so a connection may leave its crowd, but never comes back.
         */
        private void change(OrphanedWork of, Consumer<OrphanedWork> change) {
            long before = of.allFrom();
            Collection<Peers> moved = before <= of.ended()
                    ? List.of()
                    : byMark.subMap(of.ended(), false, before, false).values();
            moved.forEach(Peers::leaveTurns);
            for (Crowd each : crowds) {
                if (each != null) {
                    each.leaveQueue();
                }
            }
            change.accept(of);
            for (Crowd each : crowds) {
                if (each != null) {
                    each.joinQueue();
                }
            }
            moved.forEach(Peers::takeTurns);
            long now = of.allFrom();
            if (now > before) {
                byMark.subMap(before, true, now, false).values().forEach(Peers::leaveCrowds);
            }
        }
    }

    /**
     * Waiting connections of one address that hold equally many threads. All running tasks that gone connections have
     * left behind at the address count in the share of each. The connections are one entry of a queue, so only this
     * entry moves when such a task begins or ends.
     */
    private final class Crowd extends QueueEntry {
        private final OrphanedWork orphanedWork;
        private final int own;
        private final IndexedHeap<Level> levels = new IndexedHeap<>();

        Crowd(OrphanedWork orphanedWork, int own) {
            this.orphanedWork = orphanedWork;
            this.own = own;
        }

        /** Makes room for one more {@link Level} in this crowd, so that {@link #add} needs no memory. */
        void makeRoom() {
            levels.makeRoom();
            makeRoomInQueue();
        }

        void add(Level level) {
            leaveQueue();
            levels.add(level);
            joinQueue();
        }

        void remove(Level level) {
            leaveQueue();
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
     * Connections of one address that have waiting tasks and the same mark. {@link Neighbours#byMark} says what the
     * mark is. The same tasks left behind count in the shares of all these connections.
     */
    private final class Peers {
        private final Object key;
        private final Neighbours among;

        /**
         * Key of this object in {@link Neighbours#byMark}. It is kept as an object, so that removing the key needs no
         * memory.
         */
        private final Long mark;

        /**
         * The waiting connections, grouped in levels by the number of threads that each of them holds. That number is
         * the index. An element is null if no connection with that number of threads has waited yet.
         */
        private @Nullable Level[] byOwn = new Level[1];

        /**
         * Whether each {@link Level} of this object is in a {@link Crowd} of the address. If not, each level is itself
         * an entry in one of the queues of {@link #byHeld}.
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

        void leaveTurns() {
            for (Level each : byOwn) {
                if (each != null) {
                    each.leaveTurn();
                }
            }
        }

        void takeTurns() {
            for (Level each : byOwn) {
                if (each != null) {
                    each.takeTurn();
                }
            }
        }

        /**
         * Moves each {@link Level} of these connections from its {@link Crowd} to a queue. Called when, by the counts
         * of {@link OrphanedWork}, a task runs that was left behind at the address after these connections came. That
         * task does not count in their shares, so these connections no longer belong in a crowd.
         */
        void leaveCrowds() {
            leaveTurns();
            isOfCrowds = false;
            takeTurns();
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
     * Waiting connections of one {@link Peers} object that hold equally many threads. They have the same address, and
     * the same tasks left behind there count in their shares.
     */
    private final class Level extends QueueEntry {
        private final Peers of;
        private final int own;
        private final IndexedHeap<Share> shares = new IndexedHeap<>();

        Level(Peers of, int own) {
            this.of = of;
            this.own = own;
        }

        /** Makes room for one more share in this level, so that {@link #add} needs no memory. */
        void makeRoom() {
            shares.makeRoom();
            if (of.isOfCrowds) {
                of.among.crowd(own).makeRoom();
            } else {
                makeRoomInQueue();
            }
        }

        void add(Share share) {
            leaveTurn();
            shares.add(share);
            takeTurn();
        }

        void remove(Share share) {
            leaveTurn();
            shares.remove(share);
            takeTurn();
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
         * Removes the level from its {@link Crowd} or queue. Must be called before {@link #held} or {@link #first}
         * changes.
         */
        private void leaveTurn() {
            if (!of.isOfCrowds) {
                leaveQueue();
            } else if (!shares.isEmpty()) {
                of.among.crowd(own).remove(this);
            }
        }

        private void takeTurn() {
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

        /**
         * Counts of the tasks that gone connections have left behind at this connection's address; null if it has no
         * address.
         */
        private final @Nullable OrphanedWork orphanedWork;

        // The next fields are guarded by PoolShares.this.
        private int own;
        private @Nullable LinkedHashSet<Task> waiting;

        /**
         * Largest number of tasks that {@link #waiting} has held since it was created. It shows whether a smaller set
         * would save memory.
         */
        private int peakWaiting;

        private boolean isGone;

        /**
         * Number of tasks that gone connections had ever left behind at the address when this connection came.
         * {@link OrphanedWork#ALL} if this connection has gone too. {@link #orphanedWork} computes from this number how
         * many running tasks of gone connections count in this share.
         */
        private long mark;

        /**
         * Group of waiting connections that contains this share; null while no task of this share waits. The
         * connections of the group have the same address and the same mark, and hold equally many threads.
         */
        private @Nullable Level among;

        private Share(EventLoop loop, @Nullable OrphanedWork orphanedWork) {
            this.loop = loop;
            this.orphanedWork = orphanedWork;
            this.mark = orphanedWork == null ? 0 : orphanedWork.mark();
        }

        /**
         * Runs a task on a thread of the pool, at once or when the connection may use another thread. A task that still
         * waits must not be given to this method again.
         *
         * @throws RejectedExecutionException the pool is closed
         * @throws OutOfMemoryError no thread can be started now, and the pool is not {@link #patient}. The method also
         *     passes on anything else that the pool throws
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
                    countAsLeftBehindIfGone();
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
                // Some waiting tasks may be allowed to begin now. They began to wait while this task counted as holding
                // a thread, or because no thread could be started for them.
                beginWaiting(null);
            }
            if (noThread instanceof RuntimeException e) {
                throw e;
            } else if (noThread instanceof Error e) {
                throw e;
            }
        }

        /**
         * Takes back a task that still waits for a thread, so that it will not run.
         *
         * @return false if the task does not wait, because it has begun or is about to begin
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
                    // A share without waiting tasks must not stay in the queue: if its connection has gone, the queue
                    // would keep the share in memory.
                    leaveTurn();
                }
                isOfOthers = isGone && orphanedWork != null;
            }
            if (isOfOthers) {
                // The task had been left behind at its address, and may have counted in the shares of other connections
                // of the address. Now these connections may be able to begin a task.
                beginWaiting(null);
            }
            return true;
        }

        /**
         * Returns whether a task waits although a thread is free, because its connection already holds too many
         * threads.
         */
        public boolean isBlockedByShare(Task task) {
            synchronized (PoolShares.this) {
                return running < maxThreads && isWaiting() && waiting().contains(task);
            }
        }

        /**
         * Records that the connection has gone. Called exactly once. From now on, its running and waiting tasks count
         * in the shares of connections that come later from the same address. The waiting tasks will still run, unless
         * they are withdrawn.
         */
        public void connectionGone() {
            synchronized (PoolShares.this) {
                boolean waits = isWaiting();
                leaveTurn();
                isGone = true;
                if (orphanedWork != null) {
                    mark = OrphanedWork.ALL;
                    int tasks = waits ? waiting().size() : 0;
                    if (own > 0 || tasks > 0) {
                        changeOrphanedWork(orphanedWork, all -> all.leave(own, tasks));
                    }
                }
                if (waits) {
                    takeTurn();
                }
            }
        }

        /**
         * Counts a new task, which does not run yet, as left behind at the connection's address, if the connection has
         * gone. Does nothing otherwise.
         */
        private void countAsLeftBehindIfGone() {
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, all -> all.leave(0, 1));
            }
        }

        /**
         * Stops counting {@code tasks} waiting tasks as left behind at the connection's address, because they will not
         * run. Does nothing if the connection has not gone.
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
         * Replaces {@link #waiting} by a smaller set if it has held many tasks and only few still wait: see
         * {@link #MAX_KEPT}.
         */
        private void shrink() {
            LinkedHashSet<Task> grown = waiting;
            if (grown != null && peakWaiting > MAX_KEPT && grown.size() <= MAX_KEPT / 4) {
                try {
                    waiting = grown.isEmpty() ? null : new LinkedHashSet<>(grown);
                    peakWaiting = grown.size();
                } catch (OutOfMemoryError none) {
                    // The old set is kept. The next removal tries again.
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
            countAsLeftBehindIfGone();
            boolean isAdded = false;
            try {
                waiting().add(task);
                peakWaiting = Math.max(peakWaiting, waiting().size());
                if (among == null) {
                    order = nextOrder++;
                    takeTurn();
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

        private void takeTurn() {
            Peers of = peers();
            Level level = of.level(ofItself());
            level.makeRoom();
            level.add(this);
            among = level;
            of.countWaiting(1);
        }

        private void leaveTurn() {
            Level before = among;
            if (before != null) {
                before.remove(this);
                among = null;
                before.of.countWaiting(-1);
            }
        }

        /**
         * Returns the number of threads that the connection holds; 0 if the connection has gone and has an address,
         * since its tasks then count as left behind at the address.
         */
        private int ofItself() {
            return isGone && orphanedWork != null ? 0 : own;
        }

        private boolean mayBegin() {
            int free = maxThreads - running;
            return free > 0 && ofItself() + (orphanedWork == null ? 0 : orphanedWork.runningOf(mark)) <= free;
        }

        /**
         * Removes the first waiting task of the connection, and counts it as running. The connection then goes to the
         * end of the rotation.
         */
        private Task take() {
            Iterator<Task> first = waiting().iterator();
            Task task = first.next();
            Level now = first.hasNext() ? levelAfter(1) : null;
            first.remove();
            shrink();
            if (now == null) {
                leaveTurn();
            }
            count(1, now == null ? order : nextOrder++, now);
            return task;
        }

        /**
         * Counts a task of this connection as ended, and its thread as free. If there is no memory to move the share to
         * the {@link Level} where it belongs now, its waiting tasks wait as if the connection still held that thread.
         */
        private void ended() {
            Level now = among;
            try {
                now = levelAfter(-1);
            } catch (Throwable noMemory) {
                // The share stays in its level until its number of threads changes the next time.
            }
            count(-1, order, now);
        }

        /**
         * Returns the {@link Level} to which the share will belong when its number of running tasks has changed. Makes
         * room there, so that moving the share needs no memory.
         *
         * @param begun change in the number of running tasks: 1 if a task begins, -1 if one ends
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
         * Changes the number of running tasks, and moves the share to another {@link Level}.
         *
         * @param begun change in the number of running tasks: 1 if a task begins, -1 if one ends
         * @param newOrder order of the share from now on; it matters only if a task waits
         * @param now level to which the share belongs from now on; null if no task waits
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
     * Runs tasks on one thread of the pool, as long as there are tasks for it. The boolean value of this object is true
     * once it is decided whether the first task runs. The thread sets it just before the task, and {@link #begin} sets
     * it if the pool has thrown. If {@code begin} is first, the task does not run.
     */
    private final class ThreadRun extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        /**
         * Share of the task that runs; null if no task runs. The thread may keep this object for long, and must not
         * keep the share in memory meanwhile.
         */
        private transient @Nullable Share share;

        private transient @Nullable Task task;

        /**
         * Saved state of the thread, such as its name, which is restored after each task. Created before the thread
         * starts, since nothing may fail between the start and the first task.
         */
        private final transient Threads.SavedThreadState savedState = new Threads.SavedThreadState();

        ThreadRun(Share share) {
            this.share = share;
        }

        /**
         * Has the pool run the first task on a thread.
         *
         * @return null if a thread runs the task; otherwise why none does. In that case, the task no longer counts as
         *     holding a thread
         */
        @Nullable
        Throwable begin() {
            try {
                pool.run(Objects.requireNonNull(share).loop, this);
                return null;
            } catch (Throwable noThread) {
                if (!compareAndSet(false, true)) {
                    // A thread runs the task, although the pool has thrown.
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
         * Counts the task that this thread has run as ended, and takes the next task, of whichever connection.
         *
         * @return false if there is no next task
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
                leaveToRunningThreadsOrRefuse(noMemory);
                return share != null;
            }
            if (other != null) {
                beginWaiting(other);
            }
            return true;
        }
    }
}
