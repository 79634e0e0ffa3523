package dev.rpcx.internal;

import org.jspecify.annotations.Nullable;

/**
 * Memory that is freed when the heap is full, so that callers can be told that their calls are over. Telling a caller
 * allocates some bytes. Thread-safe.
 */
public final class MemoryReserve {
    /** Size of the reserve in bytes: enough to end some hundred calls, each of which frees memory when it ends. */
    private static final int BYTES = 64 * 1024;

    private static volatile byte @Nullable [] reserve = new byte[BYTES];

    private MemoryReserve() {}

    /** Frees the reserve. Called when memory has run out. */
    public static void use() {
        reserve = null;
    }

    /** Allocates the reserve again if it has been freed. Called at the start of each connection. */
    public static void keep() {
        if (reserve == null) {
            reserve = new byte[BYTES];
        }
    }
}
