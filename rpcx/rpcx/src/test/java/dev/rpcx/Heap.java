package dev.rpcx;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Assumptions;

/** Measures what this process has on its heap. */
public final class Heap {
    private Heap() {}

    /**
     * Skips a test that needs the garbage collector, if that must not be asked, as where thousands of mutants are
     * tried.
     */
    public static void assumeCollected() {
        Assumptions.assumeTrue(isCollectedOnRequest(), "the collector is not to be asked");
    }

    /**
     * Returns roughly how many bytes the reachable objects have: the least of several looks, each after a collection.
     */
    public static long usedBytes() {
        assumeCollected();
        Runtime machine = Runtime.getRuntime();
        long least = Long.MAX_VALUE;
        for (int look = 0; look < 3; look++) {
            System.gc();
            least = Math.min(least, machine.totalMemory() - machine.freeMemory());
        }
        return least;
    }

    static boolean isCollectedOnRequest() {
        return !ManagementFactory.getRuntimeMXBean().getInputArguments().contains("-XX:+DisableExplicitGC");
    }
}
