package dev.rpcx;

/** What this process has on its heap. */
final class Heap {
    private Heap() {}

    /** Bytes of objects that are reached, roughly: the least of some looks, each behind a collection. */
    static long usedBytes() {
        Runtime machine = Runtime.getRuntime();
        long least = Long.MAX_VALUE;
        for (int look = 0; look < 3; look++) {
            System.gc();
            least = Math.min(least, machine.totalMemory() - machine.freeMemory());
        }
        return least;
    }
}
