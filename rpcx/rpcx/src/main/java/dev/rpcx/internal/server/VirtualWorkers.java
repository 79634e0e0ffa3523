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
 * Runs the calls of one event loop on virtual threads, which are called workers. A worker that has run its calls waits
 * for more calls instead of ending, since starting a virtual thread costs about 500 bytes. Waking a worker costs one
 * dispatch by the scheduler.
 *
 * <p>A worker runs one call after the other, so calls that came together cost one dispatch, and not one each.
 * Nevertheless, no call ever waits for another call's handler, because of this invariant: <em>while calls are queued,
 * there is a worker that has been woken and has not yet begun to run a call.</em> What keeps the invariant is a mark,
 * {@link #waking}, which only one thread at a time can hold. The thread that wakes a worker holds the mark, and hands
 * it to that worker. The woken worker takes a call. If more calls are queued, it hands the mark to the next worker
 * before it runs its own call. If handlers are quick, the next worker finds no call in the queue. If a handler blocks,
 * the next worker goes on with the queue.
 *
 * <p>Idle workers form a stack. Any worker may push itself, and only the holder of the mark pops a worker. Since only
 * one thread at a time pops, the stack has no ABA problem and needs no version counters: between the read of the top
 * and the compare-and-set, no other thread can pop that top.
 */
public final class VirtualWorkers {
    /**
     * Maximum number of idle workers. Workers beyond this number end, so that the workers of a burst do not stay in
     * memory.
     */
    private static final int MAX_IDLE = 256;

    /**
     * Time after which a worker takes no more calls from the queue. The next worker continues with the calls that
     * remain. The time is limited because other virtual threads need the worker's carrier thread too.
     */
    private static final long TURN_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private static final long UNTIL_NOTHING_IS_QUEUED = TimeUnit.DAYS.toNanos(1);

    private static final long FIRST_WAKE = 1;
    private static final long TAKEN_BACK = -1;
    private static final AtomicLongFieldUpdater<Worker> WAKES =
            AtomicLongFieldUpdater.newUpdater(Worker.class, "wakes");

    /**
     * Task that needs the time at which it begins. The worker that runs it knows that time, so the clock need not be
     * read again.
     */
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
     * Has a worker run the task. If no thread can be started or woken, this method throws, and the task will not run.
     * If a worker has taken the task despite such a failure, this method does not throw. Event loop only.
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
            // A worker has taken the task already, so the failure does not matter.
        }
    }

    /**
     * Ends the idle workers now, and each other worker when it has run its calls. Called after the event loop has
     * ended.
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
     * Hands the mark, {@link #waking}, to another worker if there is work for one; otherwise clears the mark. Only the
     * thread that holds the mark calls this.
     */
    private void handOn() {
        while (!wantsWorker()) {
            waking.set(false);
            // The queue is checked once more: a thread may have queued a call before the mark was cleared. That thread
            // may have found the mark taken, and then it has woken no worker.
            if (!wantsWorker() || !takeMark()) {
                return;
            }
        }
        handOn(null);
    }

    /**
     * Hands the mark, {@link #waking}, to another worker, which runs {@code first} before queued calls. Only the thread
     * that holds the mark calls this.
     *
     * <p>Starting or waking a worker may throw because no further carrier can be started, although the worker's thread
     * is already queued for a carrier. Then this method takes the wake back, unless the worker has accepted the wake by
     * then. A worker whose wake was taken back ends when it gets a carrier.
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
            // The worker has accepted its wake, and has got the mark with it. So the failure does not matter.
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
         * Count that increases by 1 when the worker is woken, and by 1 again when the worker accepts that wake. So the
         * count is odd from a wake until the worker accepts it, and even until the next wake. The start of the worker
         * counts as its first wake. No two wakes have the same number. If a wake is taken back before the worker
         * accepts it, the value becomes {@link #TAKEN_BACK}. Then the worker ends, and the wake does not give it the
         * mark, {@link #waking}.
         */
        volatile long wakes = FIRST_WAKE;

        /**
         * Task with which the worker begins; null if it takes one from the queue. Written before {@link #wakes}, which
         * makes it visible to the worker's thread.
         */
        private @Nullable Runnable first;

        private @Nullable Worker below;
        private @Nullable Thread thread;

        /**
         * State of the worker's thread. This object is made together with the worker, before the thread starts. The
         * worker holds the mark, {@link #waking}, from its start on, so nothing may fail between its start and its
         * first task.
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
                    // close() may have checked the stack before this worker was pushed, so the stack is checked once
                    // more.
                    handOnIfFree();
                }
                while (wakes == wake + 1) {
                    LockSupport.park(this);
                    // An interrupted thread cannot park. Without this line, an idle worker that was interrupted would
                    // keep its carrier busy.
                    Thread.interrupted();
                }
            }
        }

        /**
         * Runs tasks until none is queued, but begins none after {@code TURN_NANOS}, unless no other worker can be
         * started for the queued tasks. The worker holds the mark, {@link #waking}, when this method is called. Before
         * its first task, it hands the mark to another worker or clears it.
         */
        private void runTasks() {
            Runnable task = first == null ? queued.poll() : first;
            first = null;
            long nanos = TURN_NANOS;
            try {
                handOn();
            } catch (RuntimeException | Error e) {
                // No other worker can be started, and none is on its way to the queued tasks. So this worker runs all
                // of them.
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
