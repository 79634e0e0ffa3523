package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Shares the threads of a pool among connections, as {@link AdmissionLimit} shares handlers: a connection may hold as
 * many as are still free then, and one more, so some are always left for who holds few. What may not begin yet waits in
 * the order in which it came. Connections have their turns one after the other, however much each of them has waiting.
 * What goes on when its connection is gone counts for every connection of its address: whoever comes again has it in
 * its share. Thread-safe.
 */
final class PoolShares {
    /** The threads that are shared. */
    @FunctionalInterface
    interface Pool {
        /** Has a thread run this now, or throws. There are never more at once than are shared. */
        void run(EventLoop loop, Runnable turn);
    }

    private final int most;
    private final Pool pool;

    // guarded by this
    private int running;

    /** Those that have tasks waiting; the first is the next to be looked at. */
    private final LinkedHashSet<Share> inTurn = new LinkedHashSet<>();

    /** Threads of connections that are gone. */
    private final Map<Ledger.Address, Integer> gone = new HashMap<>();

    private boolean isClosed;

    /** @param most threads at once */
    PoolShares(int most, Pool pool) {
        this.most = most;
        this.pool = pool;
    }

    /** The part of a connection. */
    Share share(EventLoop loop, Account account) {
        return new Share(loop, account.address);
    }

    /** Connections whose tasks wait: for tests. */
    synchronized int waitingConnections() {
        return inTurn.size();
    }

    /** Nothing begins by itself any more. @return what waits */
    synchronized List<Runnable> close() {
        isClosed = true;
        List<Runnable> left = new ArrayList<>();
        for (Share share : inTurn) {
            if (share.isWaiting()) {
                left.addAll(share.waiting());
                share.waiting().clear();
            }
        }
        inTurn.clear();
        return left;
    }

    /** Gives the turn to the next connection that may begin something. Under the lock. @return null if there is none */
    private @Nullable Share nextInTurn() {
        // nobody may begin without a free thread, which spares the look at all of them
        for (int i = running < most ? inTurn.size() : 0; i > 0; i--) {
            Iterator<Share> first = inTurn.iterator();
            Share share = first.next();
            // behind the others, who come first the next time
            first.remove();
            inTurn.add(share);
            if (share.mayBegin()) {
                return share;
            }
        }
        return null;
    }

    private synchronized @Nullable Turn nextTurn() {
        Share next = nextInTurn();
        return next == null ? null : new Turn(next, next.take());
    }

    /** The threads that one connection holds, and its tasks that wait for one. */
    final class Share {
        private final EventLoop loop;
        private final Ledger.@Nullable Address address;

        // guarded by the pool
        private int own;
        private @Nullable LinkedHashSet<Runnable> waiting;
        private boolean isGone;

        private Share(EventLoop loop, Ledger.@Nullable Address address) {
            this.loop = loop;
            this.address = address;
        }

        /**
         * Runs a task on a thread of the pool, now or when there is one for it. A task waits once at a time.
         *
         * @throws RejectedExecutionException the pool is closed
         */
        void run(Runnable task) {
            Turn turn;
            synchronized (PoolShares.this) {
                if (isClosed) {
                    throw new RejectedExecutionException("the server has stopped");
                }
                if (isWaiting() || !mayBegin()) {
                    addWaiting(task);
                    return;
                }
                count(1);
                turn = new Turn(this, task);
            }
            turn.begin();
        }

        /** Takes back a task. @return false if it does not wait: it has begun, or is about to */
        boolean withdraw(Runnable task) {
            synchronized (PoolShares.this) {
                boolean hasWaited = isWaiting() && waiting().remove(task);
                leaveTurnUnlessWaiting();
                return hasWaited;
            }
        }

        /** Whether a task waits although a thread is free: what its own connection holds keeps it waiting. */
        boolean isBeyond(Runnable task) {
            synchronized (PoolShares.this) {
                return running < most && isWaiting() && waiting().contains(task);
            }
        }

        /** Once. What waits is run all the same, unless it is withdrawn. */
        void connectionGone() {
            synchronized (PoolShares.this) {
                countGone(own);
                isGone = true;
            }
        }

        private boolean isWaiting() {
            return waiting != null && !waiting.isEmpty();
        }

        private LinkedHashSet<Runnable> waiting() {
            if (waiting == null) {
                waiting = new LinkedHashSet<>();
            }
            return waiting;
        }

        private void addWaiting(Runnable task) {
            waiting().add(task);
            inTurn.add(this);
        }

        /** A connection that is gone is held by nothing else. */
        private void leaveTurnUnlessWaiting() {
            if (!isWaiting()) {
                inTurn.remove(this);
            }
        }

        private boolean mayBegin() {
            int ofAddress = address == null ? 0 : gone.getOrDefault(address, 0);
            int free = most - running;
            return free > 0 && (isGone && address != null ? ofAddress : own + ofAddress) <= free;
        }

        /** The first that waits begins. */
        private Runnable take() {
            Iterator<Runnable> first = waiting().iterator();
            Runnable task = first.next();
            first.remove();
            leaveTurnUnlessWaiting();
            count(1);
            return task;
        }

        private void count(int begun) {
            running += begun;
            own += begun;
            if (isGone) {
                countGone(begun);
            }
        }

        private void countGone(int begun) {
            if (address != null && begun != 0) {
                gone.merge(address, begun, (before, more) -> before + more == 0 ? null : before + more);
            }
        }
    }

    /** A thread of the pool, as long as it finds something to run. */
    private final class Turn implements Runnable {
        private Share share;
        private Runnable task;

        /** Whoever sets it runs the task, or says that it cannot be run. */
        private final AtomicBoolean isTaken = new AtomicBoolean();

        Turn(Share share, Runnable task) {
            this.share = share;
            this.task = task;
        }

        /** What it throws means that the task will not be run. */
        void begin() {
            try {
                pool.run(share.loop, this);
            } catch (Throwable noThread) {
                if (isTaken.compareAndSet(false, true)) {
                    synchronized (PoolShares.this) {
                        share.count(-1);
                    }
                    throw noThread;
                }
                // a thread has it all the same
            }
        }

        /** @return false if the task waits on, since it found no thread */
        private boolean beginsNow() {
            try {
                begin();
                return true;
            } catch (Throwable noThread) {
                synchronized (PoolShares.this) {
                    share.addWaiting(task);
                }
                return false;
            }
        }

        @Override
        public void run() {
            if (!isTaken.compareAndSet(false, true)) {
                return;
            }
            do {
                Threads.runShared(task);
            } while (goesOn());
        }

        /** The task has ended, and another has its turn on this thread, if there is one. */
        private boolean goesOn() {
            Turn other;
            synchronized (PoolShares.this) {
                share.count(-1);
                Share next = nextInTurn();
                if (next == null) {
                    return false;
                }
                share = next;
                task = next.take();
                // whose task has ended holds one less, so that two may begin
                other = nextTurn();
            }
            while (other != null) {
                other = other.beginsNow() ? nextTurn() : null;
            }
            return true;
        }
    }
}
