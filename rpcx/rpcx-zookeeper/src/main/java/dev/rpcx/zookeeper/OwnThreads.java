package dev.rpcx.zookeeper;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/**
 * Starts threads that inherit nothing from the thread that needs them first, which usually serves a request of somebody
 * else: no value of an {@link InheritableThreadLocal}, no context class loader and no priority. Each thread runs one
 * task, which in the JDK's common pool might have to wait for tasks of others.
 */
final class OwnThreads {
    /** Time until the next try if a thread could not be started. */
    private static final long PAUSE_MILLIS = 1_000;

    private OwnThreads() {}

    private static Thread of(Runnable task) {
        Thread made = new Thread(null, task, "rpcx-zookeeper", 0, false);
        made.setDaemon(true);
        made.setPriority(Thread.NORM_PRIORITY);
        made.setContextClassLoader(OwnThreads.class.getClassLoader());
        return made;
    }

    /** Runs the task on such a thread, after a pause. */
    static void later(Runnable task, long millis) {
        CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS, OwnThreads::begin)
                .execute(task);
    }

    private static void begin(Runnable task) {
        try {
            of(task).start();
        } catch (Throwable e) {
            // Nothing else would try again.
            later(task, PAUSE_MILLIS);
        }
    }

    /**
     * Runs the maker on such a thread, and waits for its result: threads that the maker starts inherit from the thread
     * that runs it.
     */
    static <T> T runAndWait(Callable<T> maker) throws Exception {
        FutureTask<T> made = new FutureTask<>(maker);
        of(made).start();
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    return made.get();
                } catch (InterruptedException e) {
                    isInterrupted = true;
                }
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw e.getCause() instanceof Exception why ? why : e;
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
