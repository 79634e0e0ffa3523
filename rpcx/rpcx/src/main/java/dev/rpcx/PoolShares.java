package dev.rpcx;

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
 * many as are still free then, and one more, so some are always left for who holds few. What may not begin yet waits in
 * the order in which it came. Connections have their turns one after the other, however much each of them has waiting.
 * What goes on when its connection is gone is in the share of those connections of its address that come later: see
 * {@link LeftBehind}. Thread-safe.
 *
 * <p>Whether a connection may begin something depends on two numbers alone: how many threads are free, and how many it
 * holds with what it has found left behind. So those that wait stand in one queue for each number that they hold, and
 * the next is the first of the queues whose number is small enough, of which there are few however many connections
 * wait. Those of one address that hold equally many, and have found as many, stand there together. So do those that
 * have found all that runs there of what was left: the end of some of it, or of a connection, moves them as one. Those
 * that have found less of it differ by what runs, so that there are fewer of them than threads.
 *
 * <p>Nothing that may begin waits while a thread is free, but where no thread can be started. Then it waits for the end
 * of what runs, and where nothing does it is refused, or waits until a thread is tried again: see {@link #patient}. The
 * same holds where there is no memory: what takes some comes before what counts and before what moves from one queue to
 * another.
 */
final class PoolShares {
    /** The threads that are shared. */
    @FunctionalInterface
    interface Pool {
        /** Has a thread run this now, or throws. There are never more at once than are shared. */
        void run(EventLoop loop, Runnable turn);
    }

    /** What wants a thread. */
    interface Task extends Runnable {
        /**
         * It has waited, and is not run: no thread can be started, and none runs that would come to it. On any thread.
         */
        void refused(Throwable noThread);
    }

    /** A set of tasks that has held more is not kept when few are left. */
    private static final int MOST_KEPT = 64;

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final int most;
    private final boolean isPatient;
    private final Pool pool;
    private final Function<Ledger.Address, LeftBehind> leftAt;

    // guarded by this
    private int running;

    /**
     * Those of which tasks wait, by what is left behind at their address, or by itself who has none.
     */
    private final Map<Object, Neighbours> neighbours = new HashMap<>();

    /** The index is what they hold with what they have found, in threads. */
    private final List<TurnHeap<Stand>> byHeld = new ArrayList<>();

    /** The queues of {@link #byHeld} in which somebody stands. */
    private final BitSet waitingAt = new BitSet();

    private int waitingConnections;
    private long placesTaken;

    /** The next turn. */
    private long turns;

    /** Something waits although it may begin: no thread could be started for it. */
    private boolean isShortOfThreads;

    /** A timer is set to try a thread again. */
    private boolean isRetryPlanned;

    private boolean isClosed;

    /**
     * @param most threads at once
     * @param leftAt what is left behind of these threads at an address: nobody else changes it, since a change moves
     *     what waits here
     */
    PoolShares(int most, Pool pool, Function<Ledger.Address, LeftBehind> leftAt) {
        this(most, false, pool, leftAt);
    }

    /**
     * One whose tasks cannot be refused, and that may be waited for. What finds no thread waits also where nothing
     * runs, and a thread is tried again each time that a moment has passed. Parameters as above.
     */
    static PoolShares patient(int most, Pool pool, Function<Ledger.Address, LeftBehind> leftAt) {
        return new PoolShares(most, true, pool, leftAt);
    }

    private PoolShares(int most, boolean isPatient, Pool pool, Function<Ledger.Address, LeftBehind> leftAt) {
        this.most = most;
        this.isPatient = isPatient;
        this.pool = pool;
        this.leftAt = leftAt;
    }

    /** The part of a connection. */
    Share share(EventLoop loop, Account account) {
        return new Share(loop, account.address == null ? null : leftAt.apply(account.address));
    }

    /** Connections whose tasks wait: for tests. */
    synchronized int waitingConnections() {
        return waitingConnections;
    }

    /** How often something has taken its place in a queue of turns, which is what a change costs: for tests. */
    synchronized long placesTaken() {
        return placesTaken;
    }

    /** Nothing begins by itself any more. @return what waits */
    synchronized List<Task> close() {
        isClosed = true;
        return takeAll();
    }

    private List<Task> takeAll() {
        List<Task> left = new ArrayList<>();
        List<Share> all = new ArrayList<>();
        neighbours.values().forEach(ofAddress -> ofAddress.byMark.values().forEach(each -> each.addShares(all)));
        // nothing is taken before all is noted
        all.forEach(share -> left.addAll(share.waiting()));
        for (Share share : all) {
            share.dropped(share.waiting().size());
            share.waiting().clear();
            share.leaveTurn();
        }
        return left;
    }

    /** Under the lock. @return whose turn it is to begin something; null if nobody may */
    private @Nullable Share next() {
        int free = most - running;
        if (free <= 0) {
            return null;
        }
        Stand next = null;
        for (int held = waitingAt.nextSetBit(0); held >= 0 && held <= free; held = waitingAt.nextSetBit(held + 1)) {
            Stand first = queue(held).first();
            if (first != null && (next == null || first.turn < next.turn)) {
                next = first;
            }
        }
        return next == null ? null : next.first();
    }

    private TurnHeap<Stand> queue(int held) {
        while (held >= byHeld.size()) {
            // there is room for it from here on
            waitingAt.set(byHeld.size());
            waitingAt.clear(byHeld.size());
            byHeld.add(new TurnHeap<>());
        }
        return byHeld.get(held);
    }

    private @Nullable Turn nextTurn() {
        Share next = next();
        if (next == null) {
            return null;
        }
        // made first: what has been taken from its queue is run
        Turn turn = new Turn(next);
        turn.task = next.take();
        return turn;
    }

    /**
     * All begin that may, each on a thread of its own. What fails is told to nobody here: those tasks are of others.
     *
     * @param first null if that is to be found
     */
    private void beginWaiting(@Nullable Turn first) {
        Turn turn = first;
        while (true) {
            if (turn == null) {
                try {
                    synchronized (this) {
                        isShortOfThreads = false;
                        turn = nextTurn();
                    }
                } catch (Throwable noMemory) {
                    beginLater(noMemory);
                    return;
                }
                if (turn == null) {
                    return;
                }
            }
            Throwable noThread = turn.begin();
            if (noThread != null) {
                waitOn(turn, noThread);
                return;
            }
            turn = null;
        }
    }

    private void waitOn(Turn turn, Throwable noThread) {
        Task task = Objects.requireNonNull(turn.task);
        Share share = Objects.requireNonNull(turn.share);
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

    /** Also where something runs, which may block for long. @return false if there is nothing that would try again */
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

    /** Whoever runs comes to what waits and has found no thread; where nobody does, nobody would. */
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
            // all that waits is there still, for whoever comes next
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

    /** What is left behind at this address changes, and with it what those hold that have found some of it. */
    private void changeLeft(LeftBehind left, Consumer<LeftBehind> change) {
        Neighbours all = neighbours.get(left);
        if (all == null) {
            change.accept(left);
        } else {
            all.change(left, change);
        }
    }

    /** What stands in one of the queues of {@link #byHeld}, and all in it may begin something, or none. */
    private abstract class Stand extends TurnHeap.Entry {
        private static final int NOWHERE = -1;

        /** The number of the queue in which it stands: it leaves that one, whatever it holds by then. */
        private int standsAt = NOWHERE;

        /** What each of them holds with what it has found left behind. */
        abstract int held();

        /** Whose turn is first; null if nobody waits here. */
        abstract @Nullable Share first();

        /** Before anything changes that its place depends on. */
        final void leaveQueue() {
            if (standsAt != NOWHERE) {
                TurnHeap<Stand> queue = queue(standsAt);
                queue.remove(this);
                if (queue.isEmpty()) {
                    waitingAt.clear(standsAt);
                }
                standsAt = NOWHERE;
            }
        }

        /** To join the queue takes no memory, until something changes that its place depends on. */
        final void makeRoomInQueue() {
            queue(held()).makeRoom();
        }

        final void joinQueue() {
            Share first = first();
            if (first != null) {
                turn = first.turn;
                int held = held();
                queue(held).add(this);
                standsAt = held;
                placesTaken++;
                waitingAt.set(held);
            }
        }
    }

    /** The connections of one address of which tasks wait. */
    private final class Neighbours {
        /** The connections of the address, by the mark of what was left behind there when they came. */
        private final TreeMap<Long, Peers> byMark = new TreeMap<>();

        /**
         * Those that have found all that runs, and maybe more that waits. The index is the number of threads that each
         * of them holds; null where none has waited with so many.
         */
        private final List<@Nullable Crowd> crowds = new ArrayList<>();

        private final @Nullable LeftBehind left;

        Neighbours(@Nullable LeftBehind left) {
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

        /** The end of what is in every share only grows: who has found less once never has found all again. */
        private void change(LeftBehind of, Consumer<LeftBehind> change) {
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
     * Those of one address that hold equally many threads and have found all that runs of what was left behind there.
     */
    private final class Crowd extends Stand {
        private final LeftBehind left;
        private final int own;
        private final TurnHeap<Level> levels = new TurnHeap<>();

        Crowd(LeftBehind left, int own) {
            this.left = left;
            this.own = own;
        }

        /** To add one takes no memory. */
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
            return own + (int) left.runningOf(LeftBehind.ALL);
        }

        @Override
        @Nullable
        Share first() {
            Level first = levels.first();
            return first == null ? null : first.first();
        }
    }

    /** The connections of one address that have found as much left behind, as far as their tasks wait. */
    private final class Peers {
        private final Object key;
        private final Neighbours among;

        /** An object, as which it is looked for: to be gone takes no memory. */
        private final Long mark;

        /** The index is the number of threads that each of them holds; null where none has waited with so many. */
        private @Nullable Level[] byOwn = new Level[1];

        /** They stand in the crowds of their address. */
        private boolean isOfCrowds;

        /** Connections that wait. */
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

        /** More runs now than they have found. */
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

    /** Those of some peers that wait and hold equally many threads. */
    private final class Level extends Stand {
        private final Peers of;
        private final int own;
        private final TurnHeap<Share> shares = new TurnHeap<>();

        Level(Peers of, int own) {
            this.of = of;
            this.own = own;
        }

        /** To add one takes no memory. */
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

        /** Before anything changes that its place depends on. */
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
                turn = first.turn;
                placesTaken++;
                of.among.crowd(own).add(this);
            }
        }
    }

    /** The threads that one connection holds, and its tasks that wait for one. */
    final class Share extends TurnHeap.Entry {
        private final EventLoop loop;

        /** What is left behind at its address; null if it has none. */
        private final @Nullable LeftBehind left;

        // guarded by the pool
        private int own;
        private @Nullable LinkedHashSet<Task> waiting;

        /** Most that waited at once since the set was made. */
        private int mostWaiting;

        private boolean isGone;

        /** What of {@link #left} is in the share of this connection. */
        private long mark;

        /** Where it stands while something waits. */
        private @Nullable Level among;

        private Share(EventLoop loop, @Nullable LeftBehind left) {
            this.loop = loop;
            this.left = left;
            this.mark = left == null ? 0 : left.mark();
        }

        /**
         * Runs a task on a thread of the pool, now or when there is one for it. A task waits once at a time.
         *
         * @throws RejectedExecutionException the pool is closed
         * @throws OutOfMemoryError no thread can be started now, where this is not {@link #patient}; or what else the
         *     pool throws
         */
        void run(Task task) {
            Turn turn = null;
            boolean isShort;
            synchronized (PoolShares.this) {
                if (isClosed) {
                    throw new RejectedExecutionException("the server has stopped");
                }
                if (isWaiting() || !mayBegin()) {
                    add(task);
                } else {
                    turn = new Turn(this);
                    turn.task = task;
                    came();
                    count(1, this.turn, null);
                }
                isShort = isShortOfThreads;
            }
            Throwable noThread = turn == null ? null : turn.begin();
            if (turn != null && noThread != null && isPatient && !(noThread instanceof RejectedExecutionException)) {
                waitOn(turn, noThread);
                return;
            }
            if (noThread != null || isShort) {
                // what has come to wait for this thread, or could not be begun before
                beginWaiting(null);
            }
            if (noThread instanceof RuntimeException e) {
                throw e;
            } else if (noThread instanceof Error e) {
                throw e;
            }
        }

        /** Takes back a task. @return false if it does not wait: it has begun, or is about to */
        boolean withdraw(Task task) {
            boolean isOfOthers;
            synchronized (PoolShares.this) {
                if (!isWaiting() || !waiting().remove(task)) {
                    return false;
                }
                shrink();
                dropped(1);
                if (!isWaiting()) {
                    // a connection that is gone is held by nothing else
                    leaveTurn();
                }
                isOfOthers = isGone && left != null;
            }
            if (isOfOthers) {
                // it was before what others have found left behind: they may have less in their shares now
                beginWaiting(null);
            }
            return true;
        }

        /** Whether a task waits although a thread is free: what its own connection holds keeps it waiting. */
        boolean isBeyond(Task task) {
            synchronized (PoolShares.this) {
                return running < most && isWaiting() && waiting().contains(task);
            }
        }

        /** Once. What waits is run all the same, unless it is withdrawn. */
        void connectionGone() {
            synchronized (PoolShares.this) {
                boolean waits = isWaiting();
                leaveTurn();
                isGone = true;
                if (left != null) {
                    mark = LeftBehind.ALL;
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

        /** A task has come. */
        private void came() {
            if (isGone && left != null) {
                changeLeft(left, all -> all.leave(0, 1));
            }
        }

        /** So many tasks wait no longer, and are not run. */
        private void dropped(int tasks) {
            if (isGone && left != null) {
                changeLeft(left, all -> all.drop(tasks));
            }
        }

        private boolean isWaiting() {
            return waiting != null && !waiting.isEmpty();
        }

        /** A set that has grown is not kept for the few that wait, or for none. */
        private void shrink() {
            LinkedHashSet<Task> grown = waiting;
            if (grown != null && mostWaiting > MOST_KEPT && grown.size() <= MOST_KEPT / 4) {
                try {
                    waiting = grown.isEmpty() ? null : new LinkedHashSet<>(grown);
                    mostWaiting = grown.size();
                } catch (OutOfMemoryError none) {
                    // it is looked at again when the next one has gone
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
         * Behind what waits of its connection, which keeps its turn. What it throws means that the task does not wait.
         */
        private void add(Task task) {
            came();
            boolean isAdded = false;
            try {
                waiting().add(task);
                mostWaiting = Math.max(mostWaiting, waiting().size());
                if (among == null) {
                    turn = turns++;
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

        /** Threads that are not among those which are left behind. */
        private int ofItself() {
            return isGone && left != null ? 0 : own;
        }

        private boolean mayBegin() {
            int free = most - running;
            return free > 0 && ofItself() + (left == null ? 0 : left.runningOf(mark)) <= free;
        }

        /** The first that waits begins, and the next has its turn behind all others that wait now. */
        private Task take() {
            Iterator<Task> first = waiting().iterator();
            Task task = first.next();
            Level now = first.hasNext() ? levelAfter(1) : null;
            first.remove();
            shrink();
            if (now == null) {
                leaveTurn();
            }
            count(1, now == null ? turn : turns++, now);
            return task;
        }

        /** A thread is free again. Where there is no memory to say so, what waits does so as if it held one more. */
        private void ended() {
            Level now = among;
            try {
                now = levelAfter(-1);
            } catch (Throwable noMemory) {
                // next time
            }
            count(-1, turn, now);
        }

        /** Where it stands when so many more have begun: to go there takes no memory. */
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
         * @param newTurn which it has from now on, if something waits
         * @param now where it stands then
         */
        private void count(int begun, long newTurn, @Nullable Level now) {
            running += begun;
            Level before = among;
            if (before != null) {
                before.remove(this);
            }
            own += begun;
            turn = newTurn;
            if (isGone && left != null) {
                changeLeft(left, begun > 0 ? LeftBehind::begin : LeftBehind::end);
            }
            if (now != null) {
                now.add(this);
                among = now;
            }
        }
    }

    /**
     * A thread of the pool, as long as it finds something to run. Whoever sets it runs the task, or says that it cannot
     * be run.
     */
    private final class Turn extends AtomicBoolean implements Runnable {
        private static final long serialVersionUID = 1;

        /** Null once it has found nothing more: its thread may keep it for long. */
        private transient @Nullable Share share;

        private transient @Nullable Task task;

        /** Made with this: between the start of a thread and its first task nothing may fail. */
        private final transient Threads.Shared shared = new Threads.Shared();

        Turn(Share share) {
            this.share = share;
        }

        /** @return why the task is not run, and holds no thread any more; null if a thread has it */
        @Nullable
        Throwable begin() {
            try {
                pool.run(Objects.requireNonNull(share).loop, this);
                return null;
            } catch (Throwable noThread) {
                if (!compareAndSet(false, true)) {
                    // a thread has it all the same
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

        /** The task has ended, and another has its turn on this thread, if there is one. */
        private boolean goesOn() {
            Turn other = null;
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
                    // whose task has ended holds one less, so that two may begin
                    other = nextTurn();
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
