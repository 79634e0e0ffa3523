package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamErrors;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.ThreadFactories;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.wire.ConnectionErrors;
import io.netty.channel.EventLoop;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs the handlers and the signals of a server on virtual threads and on a pool of platform threads. Handlers that run
 * on an event loop do not use this class. A signal is a task that notifies a stream or a call.
 */
public class Threads {
    /**
     * Maximum number of threads of the pool that run signals at the same time. A signal is a task that notifies a
     * stream or a call, and runs on its own thread, so that no stream waits for another. With a heap of at
     * most 625 MiB, callers never get as far as this maximum: the server allows one stream for each 64 KiB of heap.
     */
    private static final int MAX_SIGNALS = 10_000;

    private static final long IDLE_MILLIS = 10_000;

    static {
        ThreadTools.prepare(List.of(
                ServerCallErrors.class,
                CallbackFailures.class,
                ConnectionErrors.class,
                CurrentCall.class,
                HandledContext.class,
                ReplyWriter.class,
                ServerSteps.class,
                StreamErrors.class,
                ThrowableText.class));
    }

    /** Context class loader of handlers: that of the thread that built the server; null if that thread had none. */
    private final @Nullable ClassLoader loader;

    private final WorkerPool pool;

    /** Gives each connection its share of the pool's threads for handlers. */
    private final PoolShares handlers;

    /**
     * Gives each connection its share of the pool's threads for signals. A signal is a task that notifies a stream or a
     * call.
     */
    private final PoolShares signals;

    /**
     * Maps each event loop to the virtual threads that run the handlers and signals of its connections. Until the event
     * loop has ended, only the event loop gives tasks to these virtual threads. Afterwards, any thread may give them
     * tasks.
     */
    private final Map<EventLoop, VirtualWorkers> workers = new ConcurrentHashMap<>();

    public Threads(int poolSize) {
        this(poolSize, IDLE_MILLIS);
    }

    /**
     * Creates the threads of a server. No thread starts before the first task.
     *
     * @param poolSize maximum number of threads of the pool that run handlers at the same time
     * @param idleMillis time without a task, in milliseconds, after which a thread of the pool ends
     */
    @SuppressWarnings("this-escape") // the pool starts threads only after this object has been made
    public Threads(int poolSize, long idleMillis) {
        loader = Thread.currentThread().getContextClassLoader();
        pool = new WorkerPool("rpcx-handler-", loader, TimeUnit.MILLISECONDS.toNanos(idleMillis));
        PoolShares.Pool begin = (loop, task) -> run(loop, RunOn.Place.POOL, task);
        handlers = new PoolShares(poolSize, begin, address -> address.handlerThreads);
        signals = PoolShares.patient(MAX_SIGNALS, begin, address -> address.signalThreads);
    }

    /** Creates a connection's share of the pool's threads for handlers. */
    PoolShares.Share handlers(EventLoop loop, Account account) {
        return handlers.share(loop, account);
    }

    /**
     * Creates a connection's share of the pool's threads for signals. A signal is a task that notifies a stream or a
     * call of the connection.
     */
    public PoolShares.Share signals(EventLoop loop, Account account) {
        return signals.share(loop, account);
    }

    /**
     * Returns whether handlers with this {@link RunOn.Place} run on the pool of platform threads. If the JDK has no
     * virtual threads, handlers for virtual threads run on the pool, too.
     */
    static boolean isPool(RunOn.Place place) {
        return place == RunOn.Place.POOL || place == RunOn.Place.VIRTUAL_THREAD && !ThreadFactories.hasVirtual();
    }

    /**
     * Starts a handler or a signal on a thread at once, even if all threads of the pool are busy. For a task of the
     * pool, {@link PoolShares} has already decided that the task may begin. Any thread may call this method for a task
     * that runs on the pool. For other tasks, only the event loop may call this method, until the event loop has ended.
     *
     * @throws RejectedExecutionException the task runs on the pool, and the server has stopped
     */
    public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
        if (isPool(place)) {
            pool.run(handler);
        } else {
            workersOf(loop).run(handler);
        }
    }

    /**
     * Returns the virtual threads for the handlers and signals of an event loop, and creates them if there are none.
     * Event loop only, until the event loop has ended.
     */
    private VirtualWorkers workersOf(EventLoop loop) {
        LoopThread here = Thread.currentThread() instanceof LoopThread thread ? thread : null;
        if (here != null && here.workersOf == this && here.workers instanceof VirtualWorkers known) {
            return known;
        }
        VirtualWorkers own = workers.get(loop);
        if (own == null) {
            own = workers.computeIfAbsent(loop, key -> new VirtualWorkers(this::startVirtual, key.ticker()));
        }
        if (here != null) {
            here.workersOf = this;
            here.workers = own;
        }
        return own;
    }

    private void startVirtual(Runnable worker) {
        ThreadFactories.virtual(worker, loader).start();
    }

    /**
     * Runs a task on the calling thread, which will run other tasks, too. Afterwards, restores the thread's name and
     * other state that the task may have changed: see {@link SavedThreadState}.
     */
    public static void runShared(Runnable task) {
        SavedThreadState here = new SavedThreadState();
        here.begin();
        here.run(task);
    }

    /**
     * Saves the state of a thread that runs several tasks, and restores the state after each task. The state is the
     * context class loader, the name and the priority; the interrupt flag is cleared. Thread-locals are not restored,
     * since those of other code cannot be cleared: see {@link RunOn}. An exception of a task does not end the thread.
     *
     * <p>{@link VirtualWorkers} and {@link PoolShares} create this object before the thread starts, so that the code
     * that starts the thread can report a lack of memory. On the started thread, {@link #begin} allocates nothing, so
     * that nothing fails before the first task.
     */
    static final class SavedThreadState {
        private Thread thread = Thread.currentThread();
        private @Nullable ClassLoader loader;
        private String name = "";
        private int priority;

        /**
         * Saves the context class loader, the name and the priority of the calling thread. After that, only the calling
         * thread may use this {@code SavedThreadState}.
         */
        void begin() {
            thread = Thread.currentThread();
            loader = thread.getContextClassLoader();
            name = thread.getName();
            priority = thread.getPriority();
        }

        public void run(Runnable task) {
            try {
                task.run();
            } catch (Throwable t) {
                ThreadTools.report(t);
            } finally {
                restore();
            }
        }

        public void run(VirtualWorkers.Timed task, long nowNanos) {
            try {
                task.run(nowNanos);
            } catch (Throwable t) {
                ThreadTools.report(t);
            } finally {
                restore();
            }
        }

        private void restore() {
            Thread.interrupted();
            if (thread.getContextClassLoader() != loader) {
                thread.setContextClassLoader(loader);
            }
            // Usually both names are the same object, so the comparison is quick.
            if (!thread.getName().equals(name)) {
                thread.setName(name);
            }
            if (thread.getPriority() != priority) {
                thread.setPriority(priority);
            }
        }
    }

    /**
     * Closes the pool, and makes the virtual threads end after their tasks. This method is usually called after the
     * event loops have ended. Tasks that still wait for a thread of the pool are run. If such a task is a call, the
     * handler of the call is not allowed to begin. If the task is a signal, that is, if it notifies a stream or a call,
     * the task runs as usual.
     */
    public void close() {
        handlers.close().forEach(this::runNow);
        signals.close().forEach(this::runNow);
        pool.close();
        for (VirtualWorkers each : workers.values()) {
            try {
                each.close();
            } catch (RuntimeException | Error e) {
                // no worker could be started to pass the end on; the workers of the other event loops still end
                ThreadTools.report(e);
            }
        }
    }

    private void runNow(PoolShares.Task task) {
        try {
            pool.run(() -> runShared(task));
        } catch (RuntimeException | Error noThread) {
            runShared(task);
        }
    }

    /**
     * Waits until the threads of the pool have ended, but no longer than {@code maxNanos} plus 1 ms. Called after
     * {@link #close}, which has interrupted these threads.
     */
    public void awaitEnd(long maxNanos) {
        try {
            pool.awaitEnd(maxNanos);
        } catch (InterruptedException e) {
            // There is no need to wait longer for the threads of the pool, because close() has interrupted them.
            Thread.currentThread().interrupt();
        }
    }
}
