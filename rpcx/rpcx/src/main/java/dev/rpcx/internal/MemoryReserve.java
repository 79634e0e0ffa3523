package dev.rpcx.internal;

import org.jspecify.annotations.Nullable;

/**
 * Keeps some memory that can be freed when the heap is full. The freed memory is used to tell callers that their calls
 * are over. Thread-safe.
 */
public final class MemoryReserve {
    /**
     * Size of the reserve in bytes. This is enough to end some hundred calls, and each call that ends frees more
     * memory.
     */
    private static final int BYTES = 64 * 1024;

    /**
     * The reserve; null after it has been freed. Any thread may free it, and any thread that begins a connection may
     * allocate it again. If two threads allocate it at the same time, one of the two arrays is dropped.
     */
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
