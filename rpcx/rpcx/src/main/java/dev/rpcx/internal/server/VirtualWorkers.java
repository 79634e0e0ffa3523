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
 * Runs the calls of one event loop on virtual threads, called workers. A worker that finds no more calls waits for new
 * ones instead of ending: starting a virtual thread costs about 500 bytes, but waking one costs only a dispatch by the
 * scheduler.
 *
 * <p>A worker runs queued calls one after the other, so calls that come together cost only one dispatch. Nevertheless,
 * no call waits for the handler of another call: <em>while calls are queued, there is a worker that has been woken and
 * has not yet begun to run a call.</em>
 *
 * <p>The flag {@link #waking} is set while there is such a worker. Only one thread at a time owns the flag: whoever
 * sets it wakes a worker, which then owns it. That worker takes a call. If more calls are queued, it wakes the next
 * worker before it runs its own call; otherwise it clears the flag.
 *
 * <p>Idle workers form a stack. Any worker may push itself, but only the owner of the flag pops. So there is no ABA
 * problem: between the read of the top and the compare-and-set, no other thread pops.
 */
public final class VirtualWorkers {
    /** Maximum number of workers that wait for calls. A worker that finds this many others waiting ends instead. */
    private static final int MAX_IDLE = 256;

    /**
     * Time, in nanoseconds, after which a worker takes no more calls from the queue and leaves them to the next worker.
     * So other virtual threads can use the platform thread that carries the worker.
     */
    private static final long TURN_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final long UNTIL_NOTHING_IS_QUEUED = TimeUnit.DAYS.toNanos(1);

    private static final long FIRST_WAKE = 1;
    private static final long TAKEN_BACK = -1;
    private static final AtomicLongFieldUpdater<Worker> WAKES =
            AtomicLongFieldUpdater.newUpdater(Worker.class, "wakes");

    /** Task that needs the time at which it begins. The worker has just read the clock, and passes the time on. */
    interface Timed extends Runnable {
        /**
         * Runs the task.
         *
         * @param nowNanos time at which the task begins, by the event loop's ticker
         */
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
     * Creates the workers of one event loop. No worker is started before the first task.
     *
     * @param starter starts a new thread that runs the given task, or throws
     * @param ticker ticker of the event loop
     */
    public VirtualWorkers(Consumer<Runnable> starter, Ticker ticker) {
        this.starter = starter;
        this.ticker = ticker;
    }

    /**
     * Runs a task on a worker, that is, on a virtual thread. If no worker can be started or woken, this method throws,
     * and the task will not run. Event loop only.
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
            // A worker has already taken the task from the queue, so the failure does not matter.
        }
    }

    /**
     * Ends the idle workers at once, and the other workers after their calls. Called after the event loop has ended.
     */
    public void close() {
        closed = true;
        handOnIfFree();
    }

    private void handOnIfFree() {
        if (takeMark()) {
            handOn();
        }
    }

    /**
     * Wakes or starts another worker if calls are queued, or if idle workers have to end; otherwise clears
     * {@link #waking}. Only the owner of that flag may call this.
     */
    private void handOn() {
        while (!wantsWorker()) {
            waking.set(false);
            // The queue is checked again, since a call may have been queued before the flag was cleared. The thread
            // that queued it may have seen the flag, and so have woken no worker.
            if (!wantsWorker() || !takeMark()) {
                return;
            }
        }
        handOn(null);
    }

    /**
     * Wakes or starts another worker, which then owns {@link #waking} and runs {@code first}, if not null, before
     * queued calls. Only the owner of that flag may call this.
     *
     * <p>Waking or starting a worker may throw although the worker will run: its thread is scheduled, but no platform
     * thread can be started to carry it. In this case, the wake-up is taken back and this method throws; the worker
     * will end when it runs. If the worker has seen the wake-up already, nothing is taken back or thrown.
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
            // The worker has seen the wake-up and owns the flag, so the failure does not matter.
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
         * Number that says whether the worker has seen its latest wake-up: odd if it has not, even if it has. The start
         * of the worker counts as the first wake-up, and no two wake-ups have the same number. {@link #TAKEN_BACK} if
         * the wake-up has been taken back; the worker then ends and does not own {@link #waking}.
         */
        volatile long wakes = FIRST_WAKE;

        /**
         * Task with which the worker begins; null if it takes its first task from the queue. Written before
         * {@link #wakes}, which publishes it.
         */
        private @Nullable Runnable first;

        private @Nullable Worker below;
        private @Nullable Thread thread;

        /**
         * Saved state of the worker's thread, which is restored after each task. Created before the thread starts: once
         * started, the worker owns {@link #waking}, and must not fail before it has run its first task.
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
                    // close() may have checked the stack before this worker was pushed
                    handOnIfFree();
                }
                while (wakes == wake + 1) {
                    LockSupport.park(this);
                    // The interrupt flag is cleared, since an interrupted thread cannot park: the worker would keep a
                    // platform thread busy.
                    Thread.interrupted();
                }
            }
        }

        /**
         * Runs tasks until none is queued, but begins none after {@link #TURN_NANOS}. If no other worker can be
         * started, runs all queued tasks, however long that takes. The worker owns {@link #waking} when this is called,
         * and passes it on or clears it before its first task.
         */
        private void runTasks() {
            Runnable task = first == null ? queued.poll() : first;
            first = null;
            long nanos = TURN_NANOS;
            try {
                handOn();
            } catch (RuntimeException | Error e) {
                // No other worker can be started, so this worker runs all queued tasks.
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
