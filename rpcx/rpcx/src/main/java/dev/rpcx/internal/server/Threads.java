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

/** Threads on which a server's handlers run when they do not run on an event loop. */
public class Threads {
    /**
     * Maximum number of threads that signal to streams and calls what those wait for. Each stream that has something to
     * be signalled now has one, so no such thread waits for another one. This number is no limit for honest callers;
     * the number of streams is.
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

    /** Context class loader of handlers: the one of the thread that has built the server. */
    private final @Nullable ClassLoader loader;

    private final WorkerPool pool;

    /** Shares of the pool for handlers. */
    private final PoolShares handlers;

    /** Shares of the pool for signals to streams and calls. */
    private final PoolShares signals;

    /** Virtual workers by event loop; only that event loop gives them tasks. */
    private final Map<EventLoop, VirtualWorkers> workers = new ConcurrentHashMap<>();

    public Threads(int poolSize) {
        this(poolSize, IDLE_MILLIS);
    }

    /** @param idleMillis time without a task after which a thread of the pool ends */
    @SuppressWarnings("this-escape") // the pool begins threads only when this has been made
    public Threads(int poolSize, long idleMillis) {
        loader = Thread.currentThread().getContextClassLoader();
        pool = new WorkerPool("rpcx-handler-", loader, TimeUnit.MILLISECONDS.toNanos(idleMillis));
        PoolShares.Pool begin = (loop, task) -> run(loop, RunOn.Place.POOL, task);
        handlers = new PoolShares(poolSize, begin, address -> address.handlerThreads);
        signals = PoolShares.patient(MAX_SIGNALS, begin, address -> address.signalThreads);
    }

    /** Makes a connection's share of the pool for its handlers. */
    PoolShares.Share handlers(EventLoop loop, Account account) {
        return handlers.share(loop, account);
    }

    /** Makes a connection's share of the pool for signals to its streams and calls. */
    public PoolShares.Share signals(EventLoop loop, Account account) {
        return signals.share(loop, account);
    }

    /** Whether handlers of this place run on the pool. Without virtual threads, all but those of event loops do. */
    static boolean isPool(RunOn.Place place) {
        return place == RunOn.Place.POOL || place == RunOn.Place.VIRTUAL_THREAD && !ThreadFactories.hasVirtual();
    }

    /**
     * Has a thread begin the handler now; {@link ConnectionThreads} says which handler may begin. Event loop only; any
     * thread if the handler runs on the pool.
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

    /** The workers of an event loop, whose thread caches those of the server that it served last. Event loop only. */
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

    /** Runs one task of several that share this thread; see {@link SavedThreadState}. */
    public static void runShared(Runnable task) {
        SavedThreadState here = new SavedThreadState();
        here.begin();
        here.run(task);
    }

    /**
     * State of a thread at {@link #begin}, restored after each of several tasks. The object is made before the thread
     * has started, where a failure can still be reported: to begin takes no memory. The interrupt flag, the context
     * class loader, the name and the priority that a task leaves behind do not reach the next task, and nothing that a
     * task throws ends the thread. Thread-locals stay: there is no way to clear those of other code, so {@link RunOn}
     * leaves them to the handler.
     */
    static final class SavedThreadState {
        private Thread thread = Thread.currentThread();
        private @Nullable ClassLoader loader;
        private String name = "";
        private int priority;

        /** Records the state of the current thread, which from here on is the thread of this object. */
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
            // The name is the same object unless a task has set another.
            if (!thread.getName().equals(name)) {
                thread.setName(name);
            }
            if (thread.getPriority() != priority) {
                thread.setPriority(priority);
            }
        }
    }

    /**
     * Called after the event loops have ended, and when no handler may begin any more. Waiting tasks run, and find that
     * no handler may begin.
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
     * Waits for the interrupted threads of the pool to end, but no longer than {@code maxNanos}. Called after
     * {@link #close}.
     */
    public void awaitEnd(long maxNanos) {
        try {
            pool.awaitEnd(maxNanos);
        } catch (InterruptedException e) {
            // An interrupted caller waits no longer, since the threads have been interrupted already.
            Thread.currentThread().interrupt();
        }
    }
}
