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
 * Shares the threads of a pool among connections, as {@link AdmissionLimit} shares handlers: a connection may hold as
 * many threads as are still free then, and one more, so some are always left for connections that hold few. Tasks that
 * may not begin yet wait in the order in which they came. Waiting connections begin one task each in rotation, however
 * many tasks each of them has waiting. A task that goes on when its connection has gone is in the share of those
 * connections of its address that come later: see {@link OrphanedWork}. Thread-safe.
 *
 * <p>Whether a connection may begin a task depends on two numbers alone: how many threads are free, and how many
 * threads the connection holds, with those it has found left behind. So waiting connections stand in one queue for each
 * number of threads that they hold. The next connection is the earliest in those queues whose number is small enough;
 * there are few queues, however many connections wait. Connections of one address that hold equally many threads, and
 * have found the same tasks left behind, stand in a queue together as one entry. So do connections that have found all
 * that still runs of what was left behind at the address: when a task that was left behind or a connection ends, they
 * move as one. Connections that have found less differ by the running tasks that they have found, so there are fewer
 * such entries than threads.
 *
 * <p>A task that may begin does not wait while a thread is free, unless no thread can be started. Then the task waits
 * for the end of a running task. If no task runs, the waiting task is refused, or waits until the pool tries again to
 * start a thread: see {@link #patient}. The same holds if there is no memory: whatever takes memory comes before the
 * counting, and before an entry moves from one queue to another.
 */
public final class PoolShares {
    /** The threads that are shared. */
    @FunctionalInterface
    public interface Pool {
        /**
         * Has a thread execute {@code run} now, or throws. There are never more runs at once than threads that are
         * shared.
         */
        void run(EventLoop loop, Runnable run);
    }

    /** Task that wants a thread. */
    public interface Task extends Runnable {
        /**
         * Called if {@code Share.run} has taken the task and the task will not run: no thread can be started, and
         * either no thread of the pool runs that would come to the task, or there is no memory for the task to wait.
         * Any thread.
         */
        void refused(Throwable noThread);
    }

    /** A set of waiting tasks that has held more than this is not kept when few are left. */
    private static final int MAX_KEPT = 64;

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final int most;
    private final boolean isPatient;
    private final Pool pool;
    private final Function<Ledger.Address, OrphanedWork> leftAt;

    // guarded by this
    private int running;

    /**
     * Connections with waiting tasks, grouped by address. The key is what is left behind at the address, or the share
     * of the connection itself if it has no address.
     */
    private final Map<Object, Neighbours> neighbours = new HashMap<>();

    /** Queues of waiting connections; the index is the threads that each holds, with those it has found left behind. */
    private final List<IndexedHeap<QueueEntry>> byHeld = new ArrayList<>();

    /** Indexes of the queues of {@link #byHeld} that are not empty. */
    private final BitSet waitingAt = new BitSet();

    private int waitingConnections;
    private long queueJoins;

    /** Next value for the {@code order} of a share; a smaller one comes first. */
    private long nextOrder;

    /** A task waits although it may begin: no thread could be started for it. */
    private boolean isShortOfThreads;

    /** A timer is set to try again to start a thread. */
    private boolean isRetryPlanned;

    private boolean isClosed;

    /**
     * @param most maximum number of threads at once
     * @param leftAt returns what is left behind of these threads at an address: nobody else changes it, since a change
     *     moves what waits here
     */
    public PoolShares(int most, Pool pool, Function<Ledger.Address, OrphanedWork> leftAt) {
        this(most, false, pool, leftAt);
    }

    /**
     * Makes shares of a pool for tasks that cannot be refused, and for which others may wait. A task that finds no
     * thread waits even if no other task runs, and the pool tries to start a thread again after each
     * {@code RETRY_NANOS}. The parameters are those of the constructor.
     */
    public static PoolShares patient(int most, Pool pool, Function<Ledger.Address, OrphanedWork> leftAt) {
        return new PoolShares(most, true, pool, leftAt);
    }

    private PoolShares(int most, boolean isPatient, Pool pool, Function<Ledger.Address, OrphanedWork> leftAt) {
        this.most = most;
        this.isPatient = isPatient;
        this.pool = pool;
        this.leftAt = leftAt;
    }

    /** Makes the share of a connection. */
    public Share share(EventLoop loop, Account account) {
        return new Share(loop, account.address == null ? null : leftAt.apply(account.address));
    }

    /** Number of connections with waiting tasks, for tests. */
    public synchronized int waitingConnections() {
        return waitingConnections;
    }

    /** How often an entry has joined a queue or a crowd, which is what a change costs; for tests. */
    public synchronized long queueJoins() {
        return queueJoins;
    }

    /** Closes the pool: no waiting task begins by itself any more. @return the tasks that waited */
    public synchronized List<Task> close() {
        isClosed = true;
        return takeAll();
    }

    private List<Task> takeAll() {
        List<Task> left = new ArrayList<>();
        List<Share> all = new ArrayList<>();
        neighbours.values().forEach(ofAddress -> ofAddress.byMark.values().forEach(each -> each.addShares(all)));
        // No task is taken before all tasks are in the list, since there may be no memory for it.
        all.forEach(share -> left.addAll(share.waiting()));
        for (Share share : all) {
            share.dropped(share.waiting().size());
            share.waiting().clear();
            share.leaveTurn();
        }
        return left;
    }

    /** Called under the lock. @return the share that is next to begin a task; null if none may */
    private @Nullable Share next() {
        int free = most - running;
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
            // From here on the bit set has room for the index, so that setting the bit takes no memory.
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
        // The run is made first, since a task that has been taken from its queue has to run.
        ThreadRun run = new ThreadRun(next);
        run.task = next.take();
        return run;
    }

    /**
     * Begins all waiting tasks that may begin, each on a thread of its own. No failure is thrown to the caller, since
     * those tasks belong to others.
     *
     * @param first the first run to begin; null if it is to be found
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
                    beginLater(noMemory);
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
            beginLater(noThread);
        }
    }

    /**
     * Sets a timer to try again, even if a task runs, since that task may block for long.
     *
     * @return false if nothing will try again
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
     * Leaves waiting tasks that have found no thread to the threads that run. If none runs, no thread would come to
     * those tasks, so they are refused.
     */
    private void beginLater(Throwable noThread) {
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
            // All waiting tasks are still in their queues, for the next thread that looks.
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

    /** Changes what is left behind at an address, and moves the waiting connections that have found some of it. */
    private void changeLeft(OrphanedWork left, Consumer<OrphanedWork> change) {
        Neighbours all = neighbours.get(left);
        if (all == null) {
            change.accept(left);
        } else {
            all.change(left, change);
        }
    }

    /** Entry in one of the queues of {@link #byHeld}: connections that all may begin a task, or none of them may. */
    private abstract class QueueEntry extends IndexedHeap.Entry {
        private static final int NOWHERE = -1;

        /** Index of the queue that the entry stands in, and has to leave whatever {@code held()} is by then. */
        private int standsAt = NOWHERE;

        /** Number of threads that each of the connections holds, with those it has found left behind. */
        abstract int held();

        /** The share with the lowest order; null if no connection waits here. */
        abstract @Nullable Share first();

        /** Leaves the queue. Called before anything changes that the position in the queues depends on. */
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

        /** Makes room: to join the queue then takes no memory, until something changes that the position depends on. */
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

    /** The connections of one address that have waiting tasks. */
    private final class Neighbours {
        /**
         * The connections, by their marks: how much had been left behind when they came, or {@code OrphanedWork.ALL}.
         */
        private final TreeMap<Long, Peers> byMark = new TreeMap<>();

        /**
         * Connections that have found all that runs of what was left behind, and maybe more that waits. The index is
         * the number of threads that each of them holds; null where none has waited with so many.
         */
        private final List<@Nullable Crowd> crowds = new ArrayList<>();

        private final @Nullable OrphanedWork left;

        Neighbours(@Nullable OrphanedWork left) {
            this.left = left;
        }

        private Crowd crowd(int own) {
            while (own >= crowds.size()) {
                crowds.add(null);
            }
            Crowd found = crowds.get(own);
            if (found == null) {
                found = new Crowd(Objects.requireNonNull(left), own);
                crowds.set(own, found);
            }
            return found;
        }

        /**
         * Changes what is left behind, and moves the connections that the change concerns. The mark from which on a
         * connection has all in its share never shrinks, so a connection that has once found less than all that runs
         * never has found all again.
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
     * Waiting connections of one address that hold equally many threads and have found all that runs of what was left
     * behind there.
     */
    private final class Crowd extends QueueEntry {
        private final OrphanedWork left;
        private final int own;
        private final IndexedHeap<Level> levels = new IndexedHeap<>();

        Crowd(OrphanedWork left, int own) {
            this.left = left;
            this.own = own;
        }

        /** Makes room: to add one level then takes no memory. */
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
            return own + (int) left.runningOf(OrphanedWork.ALL);
        }

        @Override
        @Nullable
        Share first() {
            Level first = levels.first();
            return first == null ? null : first.first();
        }
    }

    /** The connections of one address that have found the same tasks left behind, and have waiting tasks. */
    private final class Peers {
        private final Object key;
        private final Neighbours among;

        /** Key in {@code byMark}. It is an object, so that removing the entry takes no memory. */
        private final Long mark;

        /** The index is the number of threads that each connection holds; null where none has waited with so many. */
        private @Nullable Level[] byOwn = new Level[1];

        /** The levels stand in the crowds of their address, and not in queues of {@code byHeld}. */
        private boolean isOfCrowds;

        /** Number of connections that wait. */
        private int waiting;

        Peers(Share one, Neighbours among) {
            this.key = one.key();
            this.among = among;
            this.mark = one.mark;
            this.isOfCrowds = among.left != null && mark > 0 && mark >= among.left.allFrom();
        }

        private int found() {
            return among.left == null ? 0 : (int) among.left.runningOf(mark);
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

        /** Moves the levels out of the crowds, since more tasks left behind run now than the connections have found. */
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

    /** Those connections of a {@code Peers} that wait and hold equally many threads. */
    private final class Level extends QueueEntry {
        private final Peers of;
        private final int own;
        private final IndexedHeap<Share> shares = new IndexedHeap<>();

        Level(Peers of, int own) {
            this.of = of;
            this.own = own;
        }

        /** Makes room: to add one share then takes no memory. */
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

        /** Leaves its queue or crowd. Called before anything changes that the position there depends on. */
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

    /** The threads that one connection holds, and its tasks that wait for one. */
    public final class Share extends IndexedHeap.Entry {
        private final EventLoop loop;

        /** What is left behind at the connection's address; null if it has no address. */
        private final @Nullable OrphanedWork left;

        // Guarded by PoolShares.this.
        private int own;
        private @Nullable LinkedHashSet<Task> waiting;

        /** Largest number of tasks that waited at once since {@code waiting} was made. */
        private int mostWaiting;

        private boolean isGone;

        /** Mark that says which part of {@link #left} is in the share of this connection. */
        private long mark;

        /** Level in which the share stands while a task waits. */
        private @Nullable Level among;

        private Share(EventLoop loop, @Nullable OrphanedWork left) {
            this.loop = loop;
            this.left = left;
            this.mark = left == null ? 0 : left.mark();
        }

        /**
         * Runs a task on a thread of the pool, now or when there is a thread for it. One task must not wait twice at
         * the same time.
         *
         * @throws RejectedExecutionException the pool is closed
         * @throws OutOfMemoryError no thread can be started now, and the pool is not {@link #patient}; the method
         *     passes on whatever else the pool throws
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
                    came();
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
                // Other tasks may have come to wait for this thread, or could not begin before.
                beginWaiting(null);
            }
            if (noThread instanceof RuntimeException e) {
                throw e;
            } else if (noThread instanceof Error e) {
                throw e;
            }
        }

        /** Takes back a task. @return false if the task does not wait: it has begun, or is about to */
        public boolean withdraw(Task task) {
            boolean isOfOthers;
            synchronized (PoolShares.this) {
                if (!isWaiting() || !waiting().remove(task)) {
                    return false;
                }
                shrink();
                dropped(1);
                if (!isWaiting()) {
                    // Nothing but the queue holds the share of a connection that has gone.
                    leaveTurn();
                }
                isOfOthers = isGone && left != null;
            }
            if (isOfOthers) {
                // Others may have found the task left behind, and may have less in their shares now.
                beginWaiting(null);
            }
            return true;
        }

        /** Whether a task waits although a thread is free, because of what its own connection holds. */
        public boolean isBeyond(Task task) {
            synchronized (PoolShares.this) {
                return running < most && isWaiting() && waiting().contains(task);
            }
        }

        /** Called once, when the connection has gone. Waiting tasks run all the same, unless they are withdrawn. */
        public void connectionGone() {
            synchronized (PoolShares.this) {
                boolean waits = isWaiting();
                leaveTurn();
                isGone = true;
                if (left != null) {
                    mark = OrphanedWork.ALL;
                    int tasks = waits ? waiting().size() : 0;
                    if (own > 0 || tasks > 0) {
                        changeLeft(left, all -> all.leave(own, tasks));
                    }
                }
                if (waits) {
                    takeTurn();
                }
            }
        }

        /** Counts a task that has come, if the connection has gone already. */
        private void came() {
            if (isGone && left != null) {
                changeLeft(left, all -> all.leave(0, 1));
            }
        }

        /** Counts tasks that wait no longer and will not run, if the connection has gone. */
        private void dropped(int tasks) {
            if (isGone && left != null) {
                changeLeft(left, all -> all.drop(tasks));
            }
        }

        private boolean isWaiting() {
            return waiting != null && !waiting.isEmpty();
        }

        /** Replaces a set of tasks that has grown, and is no longer needed for the few that wait, or for none. */
        private void shrink() {
            LinkedHashSet<Task> grown = waiting;
            if (grown != null && mostWaiting > MAX_KEPT && grown.size() <= MAX_KEPT / 4) {
                try {
                    waiting = grown.isEmpty() ? null : new LinkedHashSet<>(grown);
                    mostWaiting = grown.size();
                } catch (OutOfMemoryError none) {
                    // The set is looked at again when the next task leaves it.
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
         * Adds a task behind the waiting tasks of its connection, which keeps its turn. If the method throws, the task
         * does not wait.
         */
        private void add(Task task) {
            came();
            boolean isAdded = false;
            try {
                waiting().add(task);
                mostWaiting = Math.max(mostWaiting, waiting().size());
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
            return left == null ? this : left;
        }

        private Peers peers() {
            Neighbours among = neighbours.computeIfAbsent(key(), key -> new Neighbours(left));
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

        /** Number of threads that the connection holds and that do not count as left behind. */
        private int ofItself() {
            return isGone && left != null ? 0 : own;
        }

        private boolean mayBegin() {
            int free = most - running;
            return free > 0 && ofItself() + (left == null ? 0 : left.runningOf(mark)) <= free;
        }

        /** Takes the first waiting task to begin it. The next one has its turn behind all others that wait now. */
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
         * Counts a thread as free again. Without memory to move the share, tasks wait as if it held one thread more.
         */
        private void ended() {
            Level now = among;
            try {
                now = levelAfter(-1);
            } catch (Throwable noMemory) {
                // The share moves the next time its number of threads changes.
            }
            count(-1, order, now);
        }

        /** The level in which the share stands when so many more tasks have begun; to move there takes no memory. */
        private @Nullable Level levelAfter(int begun) {
            Level before = among;
            if (before == null) {
                return null;
            }
            int later = isGone && left != null ? 0 : own + begun;
            Level after = before.own == later ? before : before.of.level(later);
            after.makeRoom();
            return after;
        }

        /**
         * @param begun by how many more tasks run; negative for tasks that have ended
         * @param newOrder the order of the share from now on, if a task waits
         * @param now the level in which the share stands from now on; null if no task waits
         */
        private void count(int begun, long newOrder, @Nullable Level now) {
            running += begun;
            Level before = among;
            if (before != null) {
                before.remove(this);
            }
            own += begun;
            order = newOrder;
            if (isGone && left != null) {
                changeLeft(left, begun > 0 ? OrphanedWork::begin : OrphanedWork::end);
            }
            if (now != null) {
                now.add(this);
                among = now;
            }
        }
    }

    /**
     * Use of one thread of the pool, as long as the thread finds tasks to run. Whoever sets the boolean runs the first
     * task, or reports that it cannot be run.
     */
    private final class ThreadRun extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        /**
         * Share of the running task. Null once no task is left: the thread may keep a reference to this run for long.
         */
        private transient @Nullable Share share;

        private transient @Nullable Task task;

        /** Made with the run: nothing may fail between the start of a thread and its first task. */
        private final transient Threads.SavedThreadState shared = new Threads.SavedThreadState();

        ThreadRun(Share share) {
            this.share = share;
        }

        /** @return why the task is not run and holds no thread any more; null if a thread runs it */
        @Nullable
        Throwable begin() {
            try {
                pool.run(Objects.requireNonNull(share).loop, this);
                return null;
            } catch (Throwable noThread) {
                if (!compareAndSet(false, true)) {
                    // A thread runs the task all the same.
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
            shared.begin();
            do {
                shared.run(Objects.requireNonNull(task));
            } while (goesOn());
        }

        /** Ends the task, and takes the next one for this thread. @return false if there is none */
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
                    // The connection whose task has ended holds one thread less, so two tasks may begin.
                    other = nextRun();
                }
            } catch (Throwable noMemory) {
                beginLater(noMemory);
                return share != null;
            }
            if (other != null) {
                beginWaiting(other);
            }
            return true;
        }
    }
}
