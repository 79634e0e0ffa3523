package dev.rpcx;

import io.netty.channel.EventLoop;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Where a server's handlers run when not on an event loop. */
class Threads {
    /** {@code Thread.startVirtualThread}, from JDK 21 on; looked up once. */
    private static final @Nullable MethodHandle START_VIRTUAL = startVirtual();

    /** {@code Thread.isVirtual}, from JDK 21 on. */
    private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();

    /** Longer than a processor takes to find that it has nothing else to do. */
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    /**
     * Threads that tell streams and calls what they wait for: one for each stream that has something to be told now, so
     * that no such thread waits for another one. This many are no limit to honest callers; the number of streams is.
     */
    private static final int MOST_SIGNALS = 10_000;

    private static final long IDLE_MILLIS = 10_000;

    /**
     * Its queue holds what a thread is about to take, so that one which has ended something goes on without a sleep.
     * There are as many threads as have ever been needed at once, {@code poolSize} at least, until they have been idle.
     */
    private final ThreadPoolExecutor pool;

    /** Tasks that the pool has and that have not ended: none of them may wait for another. */
    private final AtomicInteger begun = new AtomicInteger();

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
        AtomicInteger made = new AtomicInteger();
        pool =
                new ThreadPoolExecutor(
                        poolSize,
                        Integer.MAX_VALUE,
                        idleMillis,
                        TimeUnit.MILLISECONDS,
                        new LinkedBlockingQueue<>(),
                        task -> {
                            Thread thread = new Thread(
                                    () -> {
                                        try {
                                            task.run();
                                        } finally {
                                            ended();
                                        }
                                    },
                                    "rpcx-handler-" + made.incrementAndGet());
                            thread.setDaemon(true);
                            return thread;
                        }) {
                    @Override
                    protected void afterExecute(Runnable ended, @Nullable Throwable thrown) {
                        int left = begun.decrementAndGet();
                        int most = getCorePoolSize();
                        if (most > poolSize && left < most / 2) {
                            shrinkPool(poolSize);
                        }
                    }
                };
        pool.allowCoreThreadTimeOut(true);
        handlers = new PoolShares(poolSize, (loop, turn) -> run(loop, RunOn.Place.POOL, turn));
        signals = new PoolShares(MOST_SIGNALS, (loop, turn) -> run(loop, RunOn.Place.POOL, turn));
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
        return place == RunOn.Place.POOL || place == RunOn.Place.VIRTUAL_THREAD && START_VIRTUAL == null;
    }

    private static @Nullable MethodHandle startVirtual() {
        if (Runtime.version().feature() < 21) {
            return null;
        }
        try {
            return MethodHandles.publicLookup()
                    .findStatic(
                            Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static @Nullable MethodHandle isVirtual() {
        if (Runtime.version().feature() < 21) {
            return null;
        }
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * Goes so many frames down, and comes back: what follows finds that much of the stack, or is not begun.
     *
     * @return how many
     */
    static int reserveStack(int frames) {
        return frames == 0 ? 0 : reserveStack(frames - 1) + 1;
    }

    static boolean isVirtual(Thread thread) {
        MethodHandle isVirtual = IS_VIRTUAL;
        if (isVirtual == null) {
            return false;
        }
        try {
            return (boolean) isVirtual.invokeExact(thread);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Lets the virtual threads that wait for this one's processor run first. Does nothing on any other thread. A pause
     * and no {@code Thread.yield}: a thread that yields goes into the queue that its processor looks into first, so on
     * a server of one processor it comes before what event loops have started, for as long as it goes on yielding (seen
     * on JDK 25).
     */
    static void letOthersRun() {
        if (isVirtual(Thread.currentThread())) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Has a thread begin this now; {@link ConnectionThreads} says what may begin. On the event loop, or for the pool
     * anywhere.
     *
     * @throws RejectedExecutionException the server has stopped
     */
    void run(EventLoop loop, RunOn.Place place, Runnable handler) {
        MethodHandle virtual = START_VIRTUAL;
        if (virtual == null || isPool(place)) {
            beginInPool(handler);
            return;
        }
        VirtualWorkers own = workers.get(loop);
        if (own == null) {
            own = workers.computeIfAbsent(loop, key -> new VirtualWorkers(virtual));
        }
        own.run(handler);
    }

    private void beginInPool(Runnable task) {
        int count = begun.incrementAndGet();
        boolean isTaken = false;
        try {
            if (count > pool.getCorePoolSize()) {
                growPool();
            }
            pool.execute(task);
            isTaken = true;
            // a thread that has been idle for too long may just be ending: see ended()
            pool.prestartCoreThread();
            if (begun.get() > pool.getCorePoolSize()) {
                // it has shrunk meanwhile
                growPool();
            }
        } finally {
            if (!isTaken) {
                begun.decrementAndGet();
            }
        }
    }

    /**
     * A thread of the pool has ended. What was put into the queue before it was counted out, it has not seen, since its
     * time was over; what comes later sees that it is gone.
     */
    private void ended() {
        if (!pool.getQueue().isEmpty() && !pool.isShutdown()) {
            pool.prestartCoreThread();
        }
    }

    /** A pool starts a thread for each task while it has fewer than its core, so the core follows what there is to do. */
    private synchronized void shrinkPool(int least) {
        pool.setCorePoolSize(Math.max(least, begun.get()));
        if (begun.get() > pool.getCorePoolSize()) {
            growPool();
        }
    }

    private synchronized void growPool() {
        pool.setCorePoolSize(Math.max(pool.getCorePoolSize(), begun.get()));
    }

    /**
     * Runs one task of several that share a thread. The interrupt flag, the context class loader, the name and the
     * priority that it leaves behind do not reach the next task, and nothing that it throws ends the thread.
     * Thread-locals stay: there is no way to clear those of others, so {@link RunOn} leaves them to the handler.
     */
    static void runShared(Runnable task) {
        Thread thread = Thread.currentThread();
        ClassLoader loader = thread.getContextClassLoader();
        String name = thread.getName();
        int priority = thread.getPriority();
        try {
            task.run();
        } catch (Throwable t) {
            report(t);
        } finally {
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

    /** Tells this thread's handler of uncaught exceptions, which by default prints them. */
    static void report(Throwable uncaught) {
        Thread thread = Thread.currentThread();
        try {
            thread.getUncaughtExceptionHandler().uncaughtException(thread, uncaught);
        } catch (Throwable ignored) {
            // as the JDK does with a handler that fails itself
        }
    }

    /** After the event loops have ended, and when no handler may begin any more. What waits is run, and finds that. */
    void close() {
        handlers.close().forEach(this::runNow);
        signals.close().forEach(this::runNow);
        pool.shutdownNow();
        workers.values().forEach(VirtualWorkers::close);
    }

    private void runNow(PoolShares.Task left) {
        try {
            beginInPool(() -> runShared(left));
        } catch (RuntimeException | Error noThread) {
            runShared(left);
        }
    }

    /** Waits no longer than this for the threads of the pool, which have been interrupted. After {@link #close}. */
    void awaitEnd(long maxNanos) {
        try {
            pool.awaitTermination(maxNanos, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            // who is interrupted waits no longer: the threads have been told to end
            Thread.currentThread().interrupt();
        }
    }
}
