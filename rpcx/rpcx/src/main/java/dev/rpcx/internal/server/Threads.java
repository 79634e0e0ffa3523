package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.ThreadFactories;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.EventLoop;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Threads on which a server's handlers run, except handlers that run on an event loop. There are virtual threads and a
 * pool of platform threads. They also run signals, that is, tasks that notify a stream or a call.
 */
public class Threads {
    /**
     * Maximum number of threads that run signals at the same time; a signal notifies a stream or a call. Each stream
     * that is notified takes a thread of its own, so no stream waits for another. Honest callers reach the limit on the
     * number of streams before this limit.
     */
    private static final int MAX_SIGNALS = 10_000;

    private static final long IDLE_MILLIS = 10_000;

    static {
        ThreadTools.prepare(List.of(
                CallErrors.class,
                CallbackFailures.class,
                CurrentCall.class,
                HandledContext.class,
                ReplyWriter.class,
                ServerSteps.class,
                ThrowableText.class));
    }

    /** Context class loader of handlers: that of the thread that built the server; null if that thread had none. */
    private final @Nullable ClassLoader loader;

    private final WorkerPool pool;

    /** Divides among the connections the part of the pool that runs handlers. */
    private final PoolShares handlers;

    /**
     * Divides among the connections the part of the pool that runs signals. A signal is a task that notifies a stream
     * or a call.
     */
    private final PoolShares signals;

    /**
     * Virtual threads for the handlers and signals of each event loop. Only the event loop itself gives tasks to its
     * virtual threads.
     */
    private final Map<EventLoop, VirtualWorkers> workers = new ConcurrentHashMap<>();

    public Threads(int poolSize) {
        this(poolSize, IDLE_MILLIS);
    }

    /**
     * Creates the threads of a server. No thread starts before the first task.
     *
     * @param poolSize maximum number of threads of the pool that run handlers at the same time
     * @param idleMillis time, in milliseconds, after which a thread of the pool ends if it has had no task
     */
    @SuppressWarnings("this-escape") // the pool starts threads only after this object has been made
    public Threads(int poolSize, long idleMillis) {
        loader = Thread.currentThread().getContextClassLoader();
        pool = new WorkerPool("rpcx-handler-", loader, TimeUnit.MILLISECONDS.toNanos(idleMillis));
        PoolShares.Pool begin = (loop, task) -> run(loop, RunOn.Place.POOL, task);
        handlers = new PoolShares(poolSize, begin, address -> address.handlerThreads);
        signals = PoolShares.patient(MAX_SIGNALS, begin, address -> address.signalThreads);
    }

    /** Creates the share that a connection has in the part of the pool that runs handlers. */
    PoolShares.Share handlers(EventLoop loop, Account account) {
        return handlers.share(loop, account);
    }

    /**
     * Creates the share that a connection has in the part of the pool that runs signals. A signal is a task that
     * notifies a stream or a call of the connection.
     */
    public PoolShares.Share signals(EventLoop loop, Account account) {
        return signals.share(loop, account);
    }

    /**
     * Returns whether handlers with this place run on the pool of platform threads. Without virtual threads in the JDK,
     * all handlers do, except those on event loops.
     */
    static boolean isPool(RunOn.Place place) {
        return place == RunOn.Place.POOL || place == RunOn.Place.VIRTUAL_THREAD && !ThreadFactories.hasVirtual();
    }

    /**
     * Starts a handler on a thread at once, even if all threads of the pool are busy. {@link ConnectionThreads} has
     * decided before that the handler may begin. Event loop only; but for a handler that runs on the pool, any thread
     * may call this.
     *
     * @throws RejectedExecutionException the server has stopped
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
     * Event loop only.
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
     * Runs a task on the calling thread, which will run other tasks too. Afterwards, restores what the task may have
     * changed in the thread: see {@link SavedThreadState}.
     */
    public static void runShared(Runnable task) {
        SavedThreadState here = new SavedThreadState();
        here.begin();
        here.run(task);
    }

    /**
     * Saves the state of a thread that runs several tasks, and restores it after each task. The state is the context
     * class loader, the name and the priority; the interrupt flag is cleared. Thread-locals are not restored, since
     * those of other code cannot be cleared: see {@link RunOn}. An exception of a task does not end the thread.
     *
     * <p>{@link VirtualWorkers} and {@link PoolShares} create this object before the thread starts, while a failure can
     * still be reported. {@link #begin} allocates nothing.
     */
    static final class SavedThreadState {
        private Thread thread = Thread.currentThread();
        private @Nullable ClassLoader loader;
        private String name = "";
        private int priority;

        /** Saves the state of the calling thread. From now on, this object belongs to that thread. */
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
            // usually both names are the same object, so this is quick
            if (!thread.getName().equals(name)) {
                thread.setName(name);
            }
            if (thread.getPriority() != priority) {
                thread.setPriority(priority);
            }
        }
    }

    /**
     * Closes the pool, and ends the virtual threads. Called after the event loops have ended. Tasks that still wait for
     * a thread of the pool are run, and find that their handlers may not begin.
     */
    public void close() {
        handlers.close().forEach(this::runNow);
        signals.close().forEach(this::runNow);
        pool.close();
        workers.values().forEach(VirtualWorkers::close);
    }

    private void runNow(PoolShares.Task left) {
        try {
            pool.run(() -> runShared(left));
        } catch (RuntimeException | Error noThread) {
            runShared(left);
        }
    }

    /**
     * Waits until the threads of the pool have ended, but no longer than {@code maxNanos}. Called after {@link #close},
     * which has interrupted these threads.
     */
    public void awaitEnd(long maxNanos) {
        try {
            pool.awaitEnd(maxNanos);
        } catch (InterruptedException e) {
            // There is no need to wait longer: the threads of the pool have been interrupted.
            Thread.currentThread().interrupt();
        }
    }
}
