package dev.rpcx;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Assumptions;

/** Measures what this process has on its heap. */
public final class Heap {
    private Heap() {}

    /** For tests that need the collector: where thousands of mutants are tried it is not asked. */
    public static void assumeCollected() {
        Assumptions.assumeFalse(
                ManagementFactory.getRuntimeMXBean().getInputArguments().contains("-XX:+DisableExplicitGC"),
                "the collector is not to be asked");
    }

    /** Bytes of objects that are reached, roughly: the least of some looks, each behind a collection. */
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
}
