package dev.rpcx.internal.server;

import dev.rpcx.internal.io.ThreadFactories;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Pool of platform threads in which each task has a thread at once, so that no task waits for another. To this end,
 * there are always at least as many threads as unfinished tasks. A thread ends when it has had no task for some time.
 * Thread-safe.
 *
 * <p>{@link java.util.concurrent.ThreadPoolExecutor} does not suffice. With a queue, an idle thread may end just when a
 * task is queued, and so miss the task. Without a queue, each task wakes another thread.
 */
final class WorkerPool {
    private static final int THREADS_SHIFT = 32;
    private static final long ONE_THREAD = 1L << THREADS_SHIFT;

    private final long idleNanos;
    private final String name;
    private final @Nullable ClassLoader loader;

    /** Number of threads that have been created so far. The name of each thread ends with its number. */
    private final AtomicInteger made = new AtomicInteger();

    /**
     * Number of threads in the upper 32 bits, and number of unfinished tasks in the lower 32 bits. There are never more
     * tasks than threads. Any thread that gives a task, and each thread of the pool, changes the numbers.
     */
    private final AtomicLong counts = new AtomicLong();

    /**
     * Tasks that threads without a task are about to take. There is such a thread for each task here. Any thread adds
     * tasks, and the threads of the pool take them. A new thread gets its first task directly, not from this queue.
     */
    private final LinkedBlockingQueue<Runnable> queue = new LinkedBlockingQueue<>();

    /**
     * Threads of the pool. A thread that gives a task to the pool, and needs a new thread for the task, adds the new
     * thread to this set before it starts the new thread. If the start fails, the thread that gives the task removes
     * the new thread again. Otherwise, the new thread removes itself when it ends. The thread that stops the server
     * interrupts all threads that it finds in this set.
     */
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();

    /**
     * Whether {@link #close} has been called. The thread that stops the server first sets this field, and then
     * interrupts the threads of the pool. Some threads miss the interrupt: those that are added too late for it, and
     * those whose tasks clear it. Such a thread then finds this field set, and does not wait for tasks. If the
     * interrupts came before the field was set, such a thread could still wait for {@link #idleNanos}. Threads that
     * give tasks read the field too.
     */
    private volatile boolean isClosed;

    /**
     * Creates a pool that has no threads yet.
     *
     * @param name beginning of the threads' names; a number follows it
     * @param loader context class loader of the threads
     * @param idleNanos time without a task, in nanoseconds, after which a thread ends
     */
    WorkerPool(String name, @Nullable ClassLoader loader, long idleNanos) {
        this.name = name;
        this.loader = loader;
        this.idleNanos = idleNanos;
    }

    /**
     * Runs a task on a thread of the pool at once. Starts a new thread if all threads are busy.
     *
     * @param task must not throw
     * @throws RejectedExecutionException the pool is closed
     * @throws OutOfMemoryError no thread is free, and none can be started
     */
    public void run(Runnable task) {
        if (isClosed) {
            throw new RejectedExecutionException("the pool is closed");
        }
        while (true) {
            long now = counts.get();
            if (tasks(now) < threads(now)) {
                if (counts.compareAndSet(now, now + 1)) {
                    enqueue(task);
                    return;
                }
            } else if (counts.compareAndSet(now, now + ONE_THREAD + 1)) {
                start(task);
                return;
            }
        }
    }

    private void enqueue(Runnable task) {
        boolean isQueued = false;
        try {
            queue.add(task);
            isQueued = true;
        } finally {
            if (!isQueued) {
                counts.decrementAndGet();
            }
        }
    }

    private void start(Runnable first) {
        boolean isStarted = false;
        Thread thread = null;
        try {
            thread = ThreadFactories.platform(() -> work(first), name + made.incrementAndGet(), loader);
            threads.add(thread);
            thread.start();
            isStarted = true;
        } finally {
            if (!isStarted) {
                if (thread != null) {
                    threads.remove(thread);
                }
                counts.addAndGet(-ONE_THREAD - 1);
            }
        }
    }

    private void work(Runnable first) {
        boolean isCounted = true;
        try {
            for (Runnable task = first; task != null; task = next()) {
                task.run();
                counts.decrementAndGet();
            }
            isCounted = false;
        } finally {
            if (isCounted) {
                // A task has thrown, although tasks must not throw. So the task and this thread, which ends now, are no
                // longer counted.
                counts.addAndGet(-ONE_THREAD - 1);
            }
            threads.remove(Thread.currentThread());
        }
    }

    /**
     * Waits for the next task of the calling thread.
     *
     * @return the task; null if the calling thread has to end, and is no longer counted in {@link #counts}
     */
    private @Nullable Runnable next() {
        while (true) {
            Runnable task = null;
            try {
                task = isClosed ? queue.poll() : queue.poll(idleNanos, TimeUnit.NANOSECONDS);
            } catch (InterruptedException e) {
                // The interrupt comes from close(), or was meant for an earlier task. In both cases, this thread now
                // ends, even before its idle time is over. It goes on only if the other threads are too few for the
                // tasks that the pool has accepted and not finished.
            }
            if (task != null) {
                return task;
            }
            long now = counts.get();
            // This thread ends only if the other threads are enough for all counted tasks. An empty queue does not show
            // that they are enough, because the thread that gives a task counts the task before it queues the task.
            // Tested by {@code PoolThreadsTest.noTaskWaitsForAThreadThatWasEnding}.
            if (tasks(now) < threads(now) && counts.compareAndSet(now, now - ONE_THREAD)) {
                return null;
            }
            if (isClosed) {
                Thread.onSpinWait();
            }
        }
    }

    private static int threads(long counts) {
        return (int) (counts >>> THREADS_SHIFT);
    }

    private static int tasks(long counts) {
        return (int) counts;
    }

    /**
     * Closes the pool, so that it accepts no more tasks, and interrupts the threads of the pool. Tasks that have been
     * accepted already are still run.
     */
    public void close() {
        isClosed = true;
        threads.forEach(Thread::interrupt);
    }

    /** Waits until the threads of the pool have ended, but no longer than {@code maxNanos} plus 1 ms. */
    void awaitEnd(long maxNanos) throws InterruptedException {
        long end = System.nanoTime() + maxNanos;
        List<Thread> left = new ArrayList<>(threads);
        for (Thread thread : left) {
            long nanos = end - System.nanoTime();
            if (nanos <= 0) {
                return;
            }
            TimeUnit.NANOSECONDS.timedJoin(thread, Math.max(nanos, 1_000_000));
        }
    }
}
