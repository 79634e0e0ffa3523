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
 * Shares the threads of a pool among connections, by the rule of {@link AdmissionLimit}: a connection gets another
 * thread if it holds at most as many threads as are free. Other tasks wait: in order within a connection, and in
 * rotation among the connections. A task whose connection has gone is left behind, and counts in the shares of later
 * connections from the same address: see {@link OrphanedWork}. Thread-safe.
 *
 * <p>A connection has <em>found</em> the tasks that had been left behind at its address before it came. Whether a
 * connection may begin a task depends on two numbers: the number of free threads, and the number of threads that the
 * connection holds plus the number of running tasks that it has found. There is one queue of waiting connections for
 * each value of the second number. The next to begin a task is the earliest connection in all queues up to the number
 * of free threads.
 *
 * <p>A queue has one entry for all connections of one address that hold equally many threads and have found the same
 * tasks. Connections of one address that hold equally many threads and have found all running tasks left behind there
 * share one entry as well, whenever they came: see {@code Crowd}. So few entries move when a task that was left behind
 * begins or ends, however many connections wait.
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
        /** Runs {@code run} on a thread now, or throws. There are never more runs under way than threads to share. */
        void run(EventLoop loop, Runnable run);
    }

    /** Task that needs a thread. */
    public interface Task extends Runnable {
        /**
         * Called if {@code Share.run} has accepted the task, but no thread can be started and the task cannot wait for
         * one. Any thread may call this.
         *
         * @param noThread why no thread can be started
         */
        void refused(Throwable noThread);
    }

    /**
     * A set that has held more waiting tasks than this is replaced by a smaller one when at most a quarter of this
     * number still wait.
     */
    private static final int MAX_KEPT = 64;

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final int maxThreads;
    private final boolean isPatient;
    private final Pool pool;
    private final Function<Ledger.Address, OrphanedWork> orphanedWorkAt;

    // the lock of this object guards the next fields
    private int running;

    /**
     * Connections with waiting tasks, by the {@link OrphanedWork} of their address. The key of a connection without an
     * address is its share.
     */
    private final Map<Object, Neighbours> neighbours = new HashMap<>();

    /**
     * Queues of waiting connections. The index is the number of threads that each connection of the queue holds, plus
     * the number of running tasks that it has found.
     */
    private final List<IndexedHeap<QueueEntry>> byHeld = new ArrayList<>();

    /** Indexes of the queues of {@link #byHeld} that are not empty. */
    private final BitSet waitingAt = new BitSet();

    private int waitingConnections;
    private long queueJoins;

    /** Next value for the {@code order} of a share. The share with the smallest order comes first. */
    private long nextOrder;

    /** Whether a task waits although it may begin, because no thread could be started for it. */
    private boolean isShortOfThreads;

    /** Whether a timer is set to try again to start a thread. */
    private boolean isRetryPlanned;

    private boolean isClosed;

    /**
     * Creates shares of a pool. A task for which no thread can be started is refused if no other task runs.
     *
     * @param maxThreads maximum number of threads that are in use at the same time
     * @param pool runs tasks on its threads
     * @param orphanedWorkAt returns the counts of the pool's tasks that are left behind at an address; only this object
     *     may change them
     */
    public PoolShares(int maxThreads, Pool pool, Function<Ledger.Address, OrphanedWork> orphanedWorkAt) {
        this(maxThreads, false, pool, orphanedWorkAt);
    }

    /**
     * Creates shares of a pool for tasks that cannot be refused, and for which other tasks may wait. If no thread can
     * be started for a task, the pool tries again every {@code RETRY_NANOS}. The parameters are those of the public
     * constructor.
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

    /** Creates the share of a connection. */
    public Share share(EventLoop loop, Account account) {
        return new Share(loop, account.address == null ? null : orphanedWorkAt.apply(account.address));
    }

    /** Returns the number of connections with waiting tasks. For tests. */
    public synchronized int waitingConnections() {
        return waitingConnections;
    }

    /** Returns how often an entry has been put into a queue or into a {@code Crowd}. For tests. */
    public synchronized long queueJoins() {
        return queueJoins;
    }

    /**
     * Closes the pool. From now on, the pool begins none of the waiting tasks.
     *
     * @return the tasks that were waiting
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

    /** Returns the share that is next to begin a task; null if no share may. Called while holding the lock. */
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
        // The ThreadRun is created first: there may be no memory for it, and a task that has been taken has to run.
        ThreadRun run = new ThreadRun(next);
        run.task = next.take();
        return run;
    }

    /**
     * Begins all waiting tasks that may begin, each on its own thread. Throws nothing, since the tasks may belong to
     * others than the caller.
     *
     * @param first the first {@code ThreadRun} to begin; null if this method has to find it
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
     * Sets a timer to try again to start a thread. It is set even if a task runs, since that task may block for long.
     *
     * @return false if the pool is closed or no timer can be set: then nothing will try again
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
     * Leaves the waiting tasks to the threads that run, since no thread could be started. If no thread runs, all
     * waiting tasks are refused.
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
     * Changes the count of tasks that are left behind at an address, and moves the waiting connections that have found
     * some of these tasks.
     */
    private void changeOrphanedWork(OrphanedWork orphanedWork, Consumer<OrphanedWork> change) {
        Neighbours all = neighbours.get(orphanedWork);
        if (all == null) {
            change.accept(orphanedWork);
        } else {
            all.change(orphanedWork, change);
        }
    }

    /** Entry in one of the queues of {@link #byHeld}. Of its connections, either all may begin a task or none may. */
    private abstract class QueueEntry extends IndexedHeap.Entry {
        private static final int NOWHERE = -1;

        /**
         * Index of the queue that contains the entry; {@code NOWHERE} if none does. {@code held()} may have changed
         * since the entry was added.
         */
        private int standsAt = NOWHERE;

        /**
         * Returns the number of threads that each connection of this entry holds, plus the number of running tasks that
         * it has found.
         */
        abstract int held();

        /** Returns the share of this entry with the lowest order; null if no connection of this entry waits. */
        abstract @Nullable Share first();

        /** Removes the entry from its queue. Called before {@code held()} or {@code first()} changes. */
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
         * Makes room in the queue that the entry will join, so that joining needs no memory. The room lasts until
         * {@code held()} changes or another entry joins that queue.
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
     * Connections of one address with waiting tasks. A connection without an address has a {@code Neighbours} object of
     * its own.
     */
    private final class Neighbours {
        /**
         * The waiting connections, by their marks. The mark says how many tasks had ever been left behind at the
         * address when the connection came. It is {@code OrphanedWork.ALL} if the connection has gone.
         */
        private final TreeMap<Long, Peers> byMark = new TreeMap<>();

        /**
         * Crowds of the address. The index is the number of threads that each connection of the crowd holds. An element
         * is null if no connection with that number of threads has waited yet.
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
         * Changes the counts of tasks that are left behind, and moves the connections whose position in the queues
         * depends on them. A connection has found all running tasks if its mark is at least
         * {@code OrphanedWork.allFrom()}. That value never decreases, so connections only ever move out of the crowds.
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
     * Waiting connections of one address that hold equally many threads, and have found all running tasks that are left
     * behind at the address.
     */
    private final class Crowd extends QueueEntry {
        private final OrphanedWork orphanedWork;
        private final int own;
        private final IndexedHeap<Level> levels = new IndexedHeap<>();

        Crowd(OrphanedWork orphanedWork, int own) {
            this.orphanedWork = orphanedWork;
            this.own = own;
        }

        /** Makes room for one more level in this crowd, so that adding the level needs no memory. */
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

    /** Connections of one address that have found the same tasks and have waiting tasks. */
    private final class Peers {
        private final Object key;
        private final Neighbours among;

        /** Key of this object in {@code byMark}, kept as an object so that removing it needs no memory. */
        private final Long mark;

        /**
         * The waiting connections, by the number of threads that each of them holds. An element is null if no
         * connection with that number of threads has waited yet.
         */
        private @Nullable Level[] byOwn = new Level[1];

        /**
         * Whether the levels are in the crowds of their address. If not, they are directly in the queues of
         * {@code byHeld}.
         */
        private boolean isOfCrowds;

        /** Number of connections that wait. */
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
         * Moves the levels from the crowds to the queues, because a task that these connections have not found now
         * runs.
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

    /** Waiting connections of one {@code Peers} object that hold equally many threads. */
    private final class Level extends QueueEntry {
        private final Peers of;
        private final int own;
        private final IndexedHeap<Share> shares = new IndexedHeap<>();

        Level(Peers of, int own) {
            this.of = of;
            this.own = own;
        }

        /** Makes room for one more share in this level, so that adding the share needs no memory. */
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

        /** Removes the level from its queue or crowd. Called before {@code held()} or {@code first()} changes. */
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

    /** Share of one connection: the threads that it holds, and its tasks that wait for a thread. */
    public final class Share extends IndexedHeap.Entry {
        private final EventLoop loop;

        /** Tasks that are left behind at the connection's address; null if the connection has no address. */
        private final @Nullable OrphanedWork orphanedWork;

        // The next fields are guarded by PoolShares.this.
        private int own;
        private @Nullable LinkedHashSet<Task> waiting;

        /** Largest number of tasks that waited at the same time since {@code waiting} was made. */
        private int peakWaiting;

        private boolean isGone;

        /** Mark of this connection. It says which tasks of {@link #orphanedWork} count in the connection's share. */
        private long mark;

        /** Level in which this share waits for its turn; null while no task of this share waits. */
        private @Nullable Level among;

        private Share(EventLoop loop, @Nullable OrphanedWork orphanedWork) {
            this.loop = loop;
            this.orphanedWork = orphanedWork;
            this.mark = orphanedWork == null ? 0 : orphanedWork.mark();
        }

        /**
         * Runs a task on a thread of the pool, now or when there is a thread for it. A task that still waits must not
         * be given to this method again.
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
                // Tasks may have begun to wait while this task counted as holding a thread, or when no thread could be
                // started.
                beginWaiting(null);
            }
            if (noThread instanceof RuntimeException e) {
                throw e;
            } else if (noThread instanceof Error e) {
                throw e;
            }
        }

        /**
         * Takes back a task that waits for a thread.
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
                    // A share without waiting tasks has to leave the queue: if the share's connection has gone, only
                    // the queue would keep the share in memory.
                    leaveTurn();
                }
                isOfOthers = isGone && orphanedWork != null;
            }
            if (isOfOthers) {
                // Other connections of the address may have found this task. Their shares now contain one task less, so
                // these connections may be able to begin a task.
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
         * Records that the connection has gone. Called exactly once. Its running and waiting tasks are now left behind
         * at its address. The waiting tasks will still run, unless they are withdrawn.
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

        /** Counts a new task as left behind, if the connection has gone already. */
        private void countAsLeftBehindIfGone() {
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, all -> all.leave(0, 1));
            }
        }

        /**
         * Stops counting {@code tasks} waiting tasks as left behind, since they will not run. Does nothing if the
         * connection has not gone.
         */
        private void dropped(int tasks) {
            if (isGone && orphanedWork != null) {
                changeOrphanedWork(orphanedWork, all -> all.drop(tasks));
            }
        }

        private boolean isWaiting() {
            return waiting != null && !waiting.isEmpty();
        }

        /** Replaces the set of waiting tasks if it has grown and few tasks still wait: see {@code MAX_KEPT}. */
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
         * Adds a task after the other waiting tasks of its connection. If the method throws, the task does not wait.
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

        /** Returns the number of threads that the connection holds and that do not count as left behind. */
        private int ofItself() {
            return isGone && orphanedWork != null ? 0 : own;
        }

        private boolean mayBegin() {
            int free = maxThreads - running;
            return free > 0 && ofItself() + (orphanedWork == null ? 0 : orphanedWork.runningOf(mark)) <= free;
        }

        /**
         * Removes the first waiting task, and counts it as running. The connection then goes to the end of the
         * rotation.
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
         * Counts a task of this share as ended, and its thread as free. If there is no memory to move the share to
         * another level, its waiting tasks wait as if the share still held that thread.
         */
        private void ended() {
            Level now = among;
            try {
                now = levelAfter(-1);
            } catch (Throwable noMemory) {
                // The share moves when its number of threads changes the next time.
            }
            count(-1, order, now);
        }

        /**
         * Returns the level to which the share will belong when its number of running tasks has changed by
         * {@code begun}, or null if no task waits. Also makes room in that level, so that moving the share to it needs
         * no memory.
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
         * Changes the number of running tasks, and moves the share to another level.
         *
         * @param begun number of tasks that have begun; negative if tasks have ended
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
     * Runs tasks on one thread of the pool, as long as there are tasks for it. The boolean decides whether the first
     * task runs: the thread sets it before the task, and {@code begin} sets it if the pool has thrown. If {@code begin}
     * is first, the task does not run.
     */
    private final class ThreadRun extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        /**
         * Share of the running task; null when there is none, since the thread may keep this {@code ThreadRun} for
         * long.
         */
        private transient @Nullable Share share;

        private transient @Nullable Task task;

        /**
         * State of the thread, restored after each task. Created early, since nothing may fail between the start of a
         * thread and its first task.
         */
        private final transient Threads.SavedThreadState savedState = new Threads.SavedThreadState();

        ThreadRun(Share share) {
            this.share = share;
        }

        /**
         * Has the pool run the task.
         *
         * @return null if a thread runs the task; otherwise why none does, and the task no longer counts as holding a
         *     thread
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
         * Counts the task as ended, and takes the next one for this thread.
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
                    // The connection whose task has ended now holds one thread less, so a second task may begin too.
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
