package dev.rpcx.internal.server;

import dev.rpcx.internal.ThreadTools;
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
 * Virtual threads that run the calls of one event loop, and then wait for more calls instead of ending: starting a
 * virtual thread costs some 500 bytes, waking one costs one dispatch by the scheduler.
 *
 * <p>A worker runs one call after the other, so calls that came together cost one dispatch and not one each. Still no
 * call ever waits for another call's handler: <em>while calls are queued, a worker has been woken that has not
 * begun.</em> The thread that wakes a worker holds the {@link #waking} mark, and passes the mark on to that worker. The
 * woken worker takes a call and, before running it, hands the mark to the next worker if calls are left. Where handlers
 * are quick, the next worker finds no call left; where one blocks, the next worker goes on with the queue.
 *
 * <p>Idle workers form a stack that any worker pushes to and only the holder of the mark pops from. With this single
 * taker the stack has no ABA problem and needs no counters: between the taker's read of the top and its compare-and-set
 * nobody else can take that top away.
 */
public final class VirtualWorkers {
    /** Maximum number of idle workers; further ones end, since a burst must not stay in memory. */
    private static final int MAX_IDLE = 256;

    /** Time after which a worker leaves the rest to the next one: other virtual threads want the carrier too. */
    private static final long TURN_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final long UNTIL_NOTHING_IS_QUEUED = TimeUnit.DAYS.toNanos(1);

    private static final long FIRST_WAKE = 1;
    private static final long TAKEN_BACK = -1;
    private static final AtomicLongFieldUpdater<Worker> WAKES =
            AtomicLongFieldUpdater.newUpdater(Worker.class, "wakes");

    /** Task that needs the time at which it begins, which its worker knows. */
    interface Timed extends Runnable {
        /** @param nowNanos time by the event loop's ticker */
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
     * @param starter has a new thread run the given task, or throws
     * @param ticker the event loop's ticker
     */
    public VirtualWorkers(Consumer<Runnable> starter, Ticker ticker) {
        this.starter = starter;
        this.ticker = ticker;
    }

    /**
     * Has a worker run the task. Event loop only. The method throws if no thread can be started or woken; the task then
     * will not run. If a worker has taken the task all the same, the method does not throw.
     */
    public void run(Runnable task) {
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
            // A worker has taken the task already.
        }
    }

    /** Ends the idle workers, and the others when their calls end. Called after the event loop has ended. */
    public void close() {
        closed = true;
        handOnIfFree();
    }

    private void handOnIfFree() {
        if (takeMark()) {
            handOn();
        }
    }

    /** Called by the mark's holder. Hands the mark to another worker if there is something to do, or clears it. */
    private void handOn() {
        while (!wantsWorker()) {
            waking.set(false);
            // The queue is looked at once more: a thread that queued a call meanwhile may have seen the mark taken.
            if (!wantsWorker() || !takeMark()) {
                return;
            }
        }
        handOn(null);
    }

    /**
     * Called by the mark's holder. Hands the mark to another worker, which runs {@code first} before queued calls. The
     * start or wake may throw, for want of one more carrier, though the worker's thread is queued for a carrier. If the
     * worker has not taken its wake by then, the wake is taken back, and the worker finds nothing to do when it gets a
     * carrier.
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
            // The worker has taken its wake, and the mark with it.
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
         * Count of wakes and of those taken. It is odd from a wake until the worker takes that wake, and even until the
         * next wake; the start is the first wake. So no two wakes are the same. The value is {@link #TAKEN_BACK} once a
         * wake has been taken back: the worker then ends, and does not hold the mark.
         */
        volatile long wakes = FIRST_WAKE;

        /** Task to begin with; null to take one from the queue. Written before {@link #wakes}, which publishes it. */
        private @Nullable Runnable first;

        private @Nullable Worker below;
        private @Nullable Thread thread;

        /**
         * Made with the worker: nothing may fail between the worker's start and its first task, as the worker holds the
         * mark.
         */
        private final Threads.SavedThreadState shared = new Threads.SavedThreadState();

        Worker(@Nullable Runnable first) {
            this.first = first;
        }

        @Override
        public void run() {
            thread = Thread.currentThread();
            shared.begin();
            for (long wake = FIRST_WAKE; WAKES.compareAndSet(this, wake, wake + 1); wake += 2) {
                runTasks();
                if (idleCount.incrementAndGet() > MAX_IDLE || closed) {
                    idleCount.decrementAndGet();
                    return;
                }
                push();
                if (closed) {
                    // close() may have looked at the stack before the push.
                    handOnIfFree();
                }
                while (wakes == wake + 1) {
                    LockSupport.park(this);
                    // An interrupted thread cannot park: an idle worker would keep its carrier busy.
                    Thread.interrupted();
                }
            }
        }

        /** Runs tasks, as long as one worker may. The worker holds the mark at the beginning, and passes it on. */
        private void runTasks() {
            Runnable task = first == null ? queued.poll() : first;
            first = null;
            long nanos = TURN_NANOS;
            try {
                handOn();
            } catch (RuntimeException | Error e) {
                // No other worker can be started, and no one else is on its way to the queued tasks.
                nanos = UNTIL_NOTHING_IS_QUEUED;
                if (task == null) {
                    task = queued.poll();
                }
                ThreadTools.report(e);
            }
            if (task != null) {
                runFor(nanos, task);
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
