package dev.rpcx.internal;

import org.jspecify.annotations.Nullable;

/**
 * Memory that the process holds in reserve, and frees when the heap is full. Telling a caller that its call is over
 * allocates some bytes, and a call whose caller could not be told would never end. Thread-safe: any thread may call
 * this.
 */
public final class MemoryReserve {
    /**
     * Size of the reserve in bytes. It is enough to end some hundred calls, and each call frees memory when it ends.
     */
    private static final int BYTES = 64 * 1024;

    private static volatile byte @Nullable [] reserve = new byte[BYTES];

    private MemoryReserve() {}

    /** Frees the reserve. Called when memory has run out, so that callers can be told that their calls are over. */
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
