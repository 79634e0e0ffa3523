package dev.parley.process;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** All processes under way, so that Ctrl-C ends them. Static because a shutdown hook is. */
public final class Children {
    private static final Set<Child> ALIVE = ConcurrentHashMap.newKeySet();
    private static final CountDownLatch NOTHING_TO_SAVE = new CountDownLatch(1);
    private static volatile boolean isShuttingDown;
    private static volatile boolean isRunning;

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Children::endAll, "end-children"));
    }

    private Children() {}

    static void add(Child child) {
        ALIVE.add(child);
        if (isShuttingDown) {
            child.kill();
        }
    }

    static void remove(Child child) {
        ALIVE.remove(child);
    }

    /** True once the lab itself was told to end. */
    public static boolean isShuttingDown() {
        return isShuttingDown;
    }

    /** From here until {@link #saved}, a shutdown waits for the rows of the trial under way to be put away. */
    public static void toBeSaved() {
        isRunning = true;
    }

    public static void saved() {
        NOTHING_TO_SAVE.countDown();
    }

    private static void endAll() {
        isShuttingDown = true;
        ALIVE.forEach(Child::kill);
        if (isRunning) {
            try {
                if (!NOTHING_TO_SAVE.await(10, TimeUnit.SECONDS)) {
                    System.err.println(
                            "parley: the store could not be closed within 10 s; finished trials are in it all the same");
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
