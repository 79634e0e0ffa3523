package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Virtual threads that run the calls of one event loop, and wait for more instead of ending: starting one costs some 500 bytes, waking one a
 * turn of the scheduler.
 *
 * <p>A worker runs one call after the other, so that calls which came together cost one turn and not one each. Still no call ever waits for
 * another's handler: <em>while calls are queued, a worker has been woken that has not begun.</em> Whoever wakes holds the {@link #waking}
 * mark; it goes to the woken worker, who takes a call and, before running it, hands the mark to the next while calls are left. Where
 * handlers are quick, that next worker finds nothing left; where one blocks, it goes on.
 *
 * <p>Idle workers form a stack that any worker pushes to and only the mark's holder takes from. One taker is what keeps it right without
 * counters: between his look at the top and his exchange nobody else can take that top away.
 */
final class VirtualWorkers {
    /** Beyond this many idle ones a worker ends: a burst must not stay in memory. */
    private static final int MAX_IDLE = 256;

    /** After this long a worker leaves the rest to the next: other virtual threads want the carrier too. */
    private static final long TURN_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final long UNTIL_NOTHING_IS_QUEUED = TimeUnit.DAYS.toNanos(1);

    private static final long FIRST_WAKE = 1;
    private static final long TAKEN_BACK = -1;
    private static final AtomicLongFieldUpdater<Worker> WAKES =
            AtomicLongFieldUpdater.newUpdater(Worker.class, "wakes");

    /** A task that asks for the time as it begins, which its worker knows. */
    interface Timed extends Runnable {
        /** @param nowNanos by the event loop's ticker */
        void run(long nowNanos);
    }

    private final Consumer<Runnable> starter;
    private final Ticker ticker;
    private final ConcurrentLinkedQueue<Runnable> queued = new ConcurrentLinkedQueue<>();
    private final AtomicReference<@Nullable Worker> idle = new AtomicReference<>();
    private final AtomicInteger idleCount = new AtomicInteger();
    private final AtomicBoolean waking = new AtomicBoolean();
    private volatile boolean closed;

    /**
     * @param starter has a new thread run what it is given, or throws
     * @param ticker of the event loop
     */
    VirtualWorkers(Consumer<Runnable> starter, Ticker ticker) {
        this.starter = starter;
        this.ticker = ticker;
    }

    /**
     * Event loop only. What it throws, where no thread can be started or woken, means that the task will not run: a
     * worker that took it all the same has it, and nothing is thrown.
     */
    void run(Runnable task) {
        if (takeMark()) {
            handOn(task);
            return;
        }
        queued.add(task);
        try {
            handOnIfFree();
        } catch (RuntimeException | Error e) {
            if (queued.remove(task)) {
                throw e;
            }
            // a worker has taken it already
        }
    }

    /** Ends the idle workers, and the others when their calls end. After the event loop has ended. */
    void close() {
        closed = true;
        handOnIfFree();
    }

    private void handOnIfFree() {
        if (takeMark()) {
            handOn();
        }
    }

    /** By the mark's holder: hands it to another worker if there is something to do, and gives it back otherwise. */
    private void handOn() {
        while (!wantsWorker()) {
            waking.set(false);
            // once more: who queued meanwhile may have seen the mark taken
            if (!wantsWorker() || !takeMark()) {
                return;
            }
        }
        handOn(null);
    }

    /**
     * As above, with this as the first that the worker runs. A thread may be queued for a carrier and what started or
     * woke it throw all the same, for want of one more carrier: where the worker has not taken its wake by then, that
     * is taken back, and it finds nothing when a carrier comes to it.
     */
    private void handOn(@Nullable Runnable first) {
        Worker worker = null;
        long wake = FIRST_WAKE;
        try {
            worker = take();
            if (worker == null) {
                worker = new Worker(first);
                starter.accept(worker);
            } else {
                worker.first = first;
                wake = worker.wakes + 1;
                worker.wakes = wake;
                LockSupport.unpark(worker.thread);
            }
        } catch (RuntimeException | Error e) {
            if (worker == null || WAKES.compareAndSet(worker, wake, TAKEN_BACK)) {
                waking.set(false);
                throw e;
            }
            // it has begun, and has the mark
        }
    }

    private boolean takeMark() {
        return !waking.get() && waking.compareAndSet(false, true);
    }

    private boolean wantsWorker() {
        return !queued.isEmpty() || closed && idle.get() != null;
    }

    private @Nullable Worker take() {
        while (true) {
            Worker top = idle.get();
            if (top == null) {
                return null;
            }
            if (idle.compareAndSet(top, top.below)) {
                idleCount.decrementAndGet();
                return top;
            }
        }
    }

    private final class Worker implements Runnable {
        /**
         * Odd from a wake on, of which the start is the first, until the worker takes that, and even until the next: no
         * two wakes are the same. {@link #TAKEN_BACK} from where one was taken back on: the worker ends, and has no
         * mark.
         */
        volatile long wakes = FIRST_WAKE;

        /** What it begins its turn with; null if that is in the queue. Before {@link #wakes}, and with it. */
        private @Nullable Runnable first;

        private @Nullable Worker below;
        private @Nullable Thread thread;

        /** Made with the worker: between its start and its first task nothing may fail, as it has the mark. */
        private final Threads.Shared shared = new Threads.Shared();

        Worker(@Nullable Runnable first) {
            this.first = first;
        }

        @Override
        public void run() {
            thread = Thread.currentThread();
            shared.begin();
            for (long wake = FIRST_WAKE; WAKES.compareAndSet(this, wake, wake + 1); wake += 2) {
                turn();
                if (idleCount.incrementAndGet() > MAX_IDLE || closed) {
                    idleCount.decrementAndGet();
                    return;
                }
                push();
                if (closed) {
                    // the look at the stack that closing takes may have been before the push
                    handOnIfFree();
                }
                while (wakes == wake + 1) {
                    LockSupport.park(this);
                    // who is interrupted cannot park: an idle worker would keep its carrier busy
                    Thread.interrupted();
                }
            }
        }

        /** Begins with the mark. */
        private void turn() {
            Runnable task = first == null ? queued.poll() : first;
            first = null;
            long turn = TURN_NANOS;
            try {
                handOn();
            } catch (RuntimeException | Error e) {
                // no other worker can be started, and nobody else is on his way to what is queued
                turn = UNTIL_NOTHING_IS_QUEUED;
                if (task == null) {
                    task = queued.poll();
                }
                ThreadTools.report(e);
            }
            if (task != null) {
                runFor(turn, task);
            }
        }

        private void runFor(long nanos, Runnable begin) {
            long now = ticker.nanoTime();
            long end = now + nanos;
            for (Runnable task = begin; task != null; task = now - end < 0 ? queued.poll() : null) {
                if (task instanceof Timed timed) {
                    shared.run(timed, now);
                } else {
                    shared.run(task);
                }
                now = ticker.nanoTime();
            }
        }

        private void push() {
            while (true) {
                Worker top = idle.get();
                below = top;
                if (idle.compareAndSet(top, this)) {
                    return;
                }
            }
        }
    }
}
