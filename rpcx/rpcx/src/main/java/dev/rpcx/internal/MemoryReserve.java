package dev.rpcx.internal;

import org.jspecify.annotations.Nullable;

/**
 * Memory that the process keeps in reserve for when the heap is full: to tell a caller that its call is over takes some
 * bytes, and a call whose caller could not be told would never end. Thread-safe.
 */
public final class MemoryReserve {
    /** Size of the reserve: enough to end some hundred calls, each of which frees memory when it ends. */
    private static final int BYTES = 64 * 1024;

    private static volatile byte @Nullable [] reserve = new byte[BYTES];

    private MemoryReserve() {}

    /** Frees the reserve. Called when memory has run out. */
    public static void use() {
        reserve = null;
    }

    /** Allocates the reserve anew if it was used. Called at the start of each connection. */
    public static void keep() {
        if (reserve == null) {
            reserve = new byte[BYTES];
        }
    }
}
