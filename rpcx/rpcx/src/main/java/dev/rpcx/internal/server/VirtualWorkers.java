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
 * Runs the calls of one event loop on virtual threads, called workers. A worker that finds no more calls usually waits
 * for new calls instead of ending. Starting a virtual thread costs about 500 bytes, but waking one costs only a
 * dispatch by the scheduler.
 *
 * <p>A worker runs queued calls one after the other, so calls that come together cost only one dispatch. Nevertheless,
 * no call waits for the handler of another call, unless no other worker can be started: <em>while calls are queued,
 * there is a worker that has been woken and has not yet begun to run a call.</em>
 *
 * <p>The flag {@link #waking} is set while there is such a worker. Only one thread at a time owns the flag: a thread
 * that sets the flag wakes a worker, and that worker then owns the flag. The worker takes a call. If more calls are
 * queued, the worker wakes the next worker, which then owns the flag; otherwise the worker clears the flag. Only after
 * that does the worker run the call.
 *
 * <p>Idle workers form a stack. Any worker may push itself, but only the owner of the flag pops. So no other thread
 * pops between the owner's read of the top and the owner's compare-and-set, and there is no ABA problem.
 */
public final class VirtualWorkers {
    /** Maximum number of workers that wait for calls. A worker that finds this many others waiting ends instead. */
    private static final int MAX_IDLE = 256;

    /**
     * Time, in nanoseconds, after which a worker hands the queued calls over to the next worker. So other virtual
     * threads can use the platform thread that carries the worker.
     */
    private static final long TIME_SLICE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

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

    /**
     * Calls that wait for a worker. The event loop adds calls. After the event loop has ended, any thread may add them.
     * Workers take calls. If no worker can be started, {@link #run} takes back the call that it has added.
     */
    private final ConcurrentLinkedQueue<Runnable> queued = new ConcurrentLinkedQueue<>();

    /** Top of the stack of idle workers: see the class comment. */
    private final AtomicReference<@Nullable Worker> idle = new AtomicReference<>();

    /**
     * Number of workers in the stack of idle workers. A worker increments the number before it pushes itself. The
     * thread that pops a worker decrements the number after the pop. So the number can be too large for a moment, but
     * never too small.
     */
    private final AtomicInteger idleCount = new AtomicInteger();

    /**
     * Flag that is set while there is a woken worker that has not yet begun to run a call. Only one thread at a time
     * owns the flag: see the class comment.
     */
    private final AtomicBoolean waking = new AtomicBoolean();

    /**
     * Whether {@link #close} has been called. Written by the thread that stops the server, and read by workers and by
     * threads that call {@link #run}.
     */
    private volatile boolean closed;

    /**
     * Creates the workers of one event loop. No worker is started before the first task.
     *
     * @param starter starts a new thread that runs the given task, or throws
     * @param ticker clock of the event loop, by which the workers measure time
     */
    public VirtualWorkers(Consumer<Runnable> starter, Ticker ticker) {
        this.starter = starter;
        this.ticker = ticker;
    }

    /**
     * Runs a task on a worker, that is, on a virtual thread. If no worker can be started or woken for this task, this
     * method throws, and the task will not run. Called on the event loop, and after the event loop's end also on other
     * threads.
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
            // The exception is ignored, because a worker has already taken the task from the queue.
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
     * Wakes or starts another worker if calls are queued, or if idle workers have to end. Otherwise clears
     * {@link #waking}, the flag that is set while a woken worker has not yet begun a call. Only the thread that owns
     * the flag may call this method.
     */
    private void handOn() {
        while (!wantsWorker()) {
            waking.set(false);
            // The check is repeated, because another thread may have queued a call, or called close(), before this
            // thread cleared the flag "waking". The other thread woke no worker if it saw that this flag was set. Then
            // the call could stay queued. Tested by {@code VirtualWorkersTest.eachTaskRunsOnce}.
            if (!wantsWorker() || !takeMark()) {
                return;
            }
        }
        handOn(null);
    }

    /**
     * Wakes or starts another worker, and passes the flag {@link #waking} on to that worker. Only the thread that owns
     * the flag may call this method.
     *
     * <p>If no platform thread can be started at the moment to carry the worker's virtual thread, waking or starting
     * the worker may throw. The virtual thread will nevertheless run later. There are two cases:
     *
     * <ul>
     *   <li>The worker has not seen the wake-up. This method takes the wake-up back, that is, sets the worker's counter
     *       to {@link #TAKEN_BACK}, and throws. When the worker runs, it ends without running a task.
     *   <li>The worker has already seen the wake-up. This method takes nothing back and does not throw, and the worker
     *       runs its tasks.
     * </ul>
     *
     * <p>This thread and the worker change the counter by compare-and-set, so only one of the two cases can occur.
     * Tested by {@code VirtualWorkersTest.aTaskThatAWorkerHasBegunIsNotRefusedWhereItsStartFails} and
     * {@code VirtualWorkersTest.aWorkerWhoseStartHasFailedRunsNothingWhenItComesAllTheSame}.
     *
     * @param first task that the worker runs before queued calls; null for none
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
            // The exception is ignored, because the worker has seen the wake-up and now owns the flag.
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
         * Counter of the worker's wake-ups. Each wake-up adds 1, and the worker adds 1 when it sees the wake-up. So the
         * counter is odd until the worker has seen its latest wake-up, and is even after that. The start of the worker
         * is the first wake-up. The value {@link #TAKEN_BACK} means that the latest wake-up has been taken back. The
         * worker then ends, and does not own the flag {@link #waking}.
         */
        volatile long wakes = FIRST_WAKE;

        /**
         * Task with which the worker begins; null if the worker takes its first task from the queue. The thread that
         * wakes an idle worker writes this field before {@link #wakes}, whose volatile write makes the task visible to
         * the worker. In the other order, the worker could miss the task. Tested by
         * {@code VirtualWorkersTest.whatComesOneByOneIsRunByWorkersThatAreThere}.
         */
        private @Nullable Runnable first;

        /**
         * Worker below this one in the stack of idle workers; null if there is none. This worker writes the field
         * before it pushes itself onto the stack. The owner of the flag {@link #waking} reads the field when it pops
         * this worker.
         */
        private @Nullable Worker below;

        /**
         * Thread of this worker. The worker writes this field before it pushes itself onto the stack of idle workers.
         * The thread that wakes the worker reads the field.
         */
        private @Nullable Thread thread;

        /**
         * Saves the state of the worker's thread, and restores the state after each task. This object is created before
         * the thread starts. If a started worker had to create it and found no memory, the worker would end without
         * passing on or clearing the flag {@link #waking}. The flag would stay set, and no other worker would be woken.
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
                    // close() may have looked at the stack of idle workers before this worker was pushed. Therefore the
                    // worker on top of the stack, which may be this one, is woken here. Each woken worker wakes the
                    // next one, and ends. Otherwise this worker could wait for ever.
                    handOnIfFree();
                }
                while (wakes == wake + 1) {
                    LockSupport.park(this);
                    // The interrupt flag is cleared, because an interrupted thread cannot park. The worker would loop
                    // and keep a platform thread busy.
                    Thread.interrupted();
                }
            }
        }

        /**
         * Runs tasks until no task is queued, but begins none after {@link #TIME_SLICE_NANOS}. If no other worker can
         * be started, runs all queued tasks, however long that takes. The worker owns the flag {@link #waking} when
         * this is called, and passes the flag on or clears it before its first task.
         */
        private void runTasks() {
            Runnable task = first == null ? queued.poll() : first;
            first = null;
            long nanos = TIME_SLICE_NANOS;
            try {
                handOn();
            } catch (RuntimeException | Error e) {
                // No other worker can be started, so this worker runs all queued tasks without a time limit.
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
