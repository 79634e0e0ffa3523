package dev.parley.process;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** All child processes that run, so that Ctrl-C ends them. It is static, as the shutdown hook is. */
public final class Children {
    private static final Duration TO_SAVE = Duration.ofSeconds(10);
    private static final Set<Child> ALIVE = ConcurrentHashMap.newKeySet();
    /** One permit for every {@link Hold} there can be. */
    private static final int MAX_HOLDS = 1_000_000;

    private static final Semaphore HOLDS = new Semaphore(MAX_HOLDS);
    private static final CountDownLatch SHUTDOWN = new CountDownLatch(1);

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Children::endAll, "end-children"));
    }

    private Children() {}

    /** While a hold is open, a shutdown waits, so that results can be stored and messages printed. */
    @FunctionalInterface
    public interface Hold extends AutoCloseable {
        @Override
        void close();
    }

    static void add(Child child) {
        ALIVE.add(child);
        if (isShuttingDown()) {
            child.kill();
        }
    }

    static void remove(Child child) {
        ALIVE.remove(child);
    }

    /** True once this process was told to end. */
    public static boolean isShuttingDown() {
        return SHUTDOWN.getCount() == 0;
    }

    /**
     * The same for a caller that saw a child end and asks why: Ctrl-C reaches all processes of a terminal at once, and
     * a child may end before this process has begun to.
     */
    public static boolean isShuttingDown(Duration within) throws InterruptedException {
        return SHUTDOWN.await(within.toNanos(), TimeUnit.NANOSECONDS);
    }

    /** From here until it is closed, a shutdown ends all children and then waits, at most ten seconds. */
    public static Hold hold() {
        HOLDS.acquireUninterruptibly();
        return HOLDS::release;
    }

    private static void endAll() {
        SHUTDOWN.countDown();
        ALIVE.forEach(Child::kill);
        try {
            if (!HOLDS.tryAcquire(MAX_HOLDS, TO_SAVE.toSeconds(), TimeUnit.SECONDS)) {
                System.err.println("parley: the store could not be closed within " + TO_SAVE.toSeconds()
                        + " s; finished trials are in it all the same");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
