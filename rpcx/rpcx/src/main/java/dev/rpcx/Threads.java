package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Where a server's handlers run when not on an event loop. */
class Threads {
    /**
     * Threads that tell streams and calls what they wait for: one for each stream that has something to be told now, so
     * that no such thread waits for another one. This many are no limit to honest callers; the number of streams is.
     */
    private static final int MOST_SIGNALS = 10_000;

    private static final long IDLE_MILLIS = 10_000;

    static {
        ThreadTools.prepare(
                List.of(CallbackFailures.class, CurrentCall.class, HandledContext.class, ThrowableText.class));
    }

    /** The context class loader of handlers: that of the thread which has built the server. */
    private final @Nullable ClassLoader loader;

    private final WorkerPool pool;

    /** The pool as handlers share it. */
    private final PoolShares handlers;

    /** The pool as what has to be told to streams and calls shares it. */
    private final PoolShares signals;

    /** By event loop, so that each has one taker only. */
    private final Map<EventLoop, VirtualWorkers> workers = new ConcurrentHashMap<>();

    Threads(int poolSize) {
        this(poolSize, IDLE_MILLIS);
    }

    /** @param idleMillis a thread of the pool that has had nothing to do for so long ends */
    Threads(int poolSize, long idleMillis) {
        loader = Thread.currentThread().getContextClassLoader();
        pool = new WorkerPool("rpcx-handler-", loader, TimeUnit.MILLISECONDS.toNanos(idleMillis));
        PoolShares.Pool begin = (loop, turn) -> run(loop, RunOn.Place.POOL, turn);
        handlers = new PoolShares(poolSize, begin, address -> address.handlerThreads);
        signals = PoolShares.patient(MOST_SIGNALS, begin, address -> address.signalThreads);
    }

    /** What a connection has of the pool for its handlers. */
    PoolShares.Share handlers(EventLoop loop, Account account) {
        return handlers.share(loop, account);
    }

    /** What a connection has of the pool for what its streams and calls have to be told. */
    PoolShares.Share signals(EventLoop loop, Account account) {
        return signals.share(loop, account);
    }

    /** Whether handlers of this place run on the pool: all but those of event loops do on a JDK without virtual threads. */
    static boolean isPool(RunOn.Place place) {
        return place == RunOn.Place.POOL || place == RunOn.Place.VIRTUAL_THREAD && !OwnThreads.hasVirtual();
    }

    /**
     * Has a thread begin this now; {@link ConnectionThreads} says what may begin. On the event loop, or for the pool
     * anywhere.
     *
     * @throws RejectedExecutionException the server has stopped
     */
    void run(EventLoop loop, RunOn.Place place, Runnable handler) {
        if (isPool(place)) {
            pool.run(handler);
        } else {
            workersOf(loop).run(handler);
        }
    }

    /** On the event loop, which has those of the server that it serves at hand. */
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
        OwnThreads.virtual(worker, loader).start();
    }

    /** Runs one task of several that share this thread; see {@link Shared}. */
    static void runShared(Runnable task) {
        Shared here = new Shared();
        here.begin();
        here.run(task);
    }

    /**
     * A thread, as it was at {@link #begin}, for several tasks. It is made before there is one, where what fails is
     * still heard of: beginning takes no memory. The interrupt flag, the context class loader, the name and the
     * priority that one leaves behind do not reach the next, and nothing that it throws ends the thread. Thread-locals
     * stay: there is no way to clear those of others, so {@link RunOn} leaves them to the handler.
     */
    static final class Shared {
        private Thread thread = Thread.currentThread();
        private @Nullable ClassLoader loader;
        private String name = "";
        private int priority;

        /** From here on it is this thread. */
        void begin() {
            thread = Thread.currentThread();
            loader = thread.getContextClassLoader();
            name = thread.getName();
            priority = thread.getPriority();
        }

        void run(Runnable task) {
            try {
                task.run();
            } catch (Throwable t) {
                ThreadTools.report(t);
            } finally {
                restore();
            }
        }

        void run(VirtualWorkers.Timed task, long nowNanos) {
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
            // the same object unless somebody has set another
            if (!thread.getName().equals(name)) {
                thread.setName(name);
            }
            if (thread.getPriority() != priority) {
                thread.setPriority(priority);
            }
        }
    }

    /** After the event loops have ended, and when no handler may begin any more. What waits is run, and finds that. */
    void close() {
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

    /** Waits no longer than this for the threads of the pool, which have been interrupted. After {@link #close}. */
    void awaitEnd(long maxNanos) {
        try {
            pool.awaitEnd(maxNanos);
        } catch (InterruptedException e) {
            // who is interrupted waits no longer: the threads have been told to end
            Thread.currentThread().interrupt();
        }
    }
}
