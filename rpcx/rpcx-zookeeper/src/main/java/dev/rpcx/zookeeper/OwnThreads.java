package dev.rpcx.zookeeper;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/**
 * Threads that inherit nothing of the thread that needs them first, which is as a rule one that serves somebody's
 * request: no value of an {@link InheritableThreadLocal}, no context class loader and no priority. Each has one task,
 * which waits for nobody else's, as it would in the JDK's common pool.
 */
final class OwnThreads {
    /** Between a thread that could not be had and the next attempt. */
    private static final long PAUSE_MILLIS = 1_000;

    private OwnThreads() {}

    private static Thread of(Runnable task) {
        Thread made = new Thread(null, task, "rpcx-zookeeper", 0, false);
        made.setDaemon(true);
        made.setPriority(Thread.NORM_PRIORITY);
        made.setContextClassLoader(OwnThreads.class.getClassLoader());
        return made;
    }

    /** Runs this after a pause. */
    static void later(Runnable task, long millis) {
        CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS, OwnThreads::begin)
                .execute(task);
    }

    private static void begin(Runnable task) {
        try {
            of(task).start();
        } catch (Throwable e) {
            // nobody else asks again
            later(task, PAUSE_MILLIS);
        }
    }

    /** Makes this on such a thread, and waits for it: threads that it begins inherit of the one that makes it. */
    static <T> T made(Callable<T> maker) throws Exception {
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
