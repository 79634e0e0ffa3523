package dev.rpcx;

import org.jspecify.annotations.Nullable;

/**
 * A little memory that is kept for when there is no other: telling callers that their calls are over takes some bytes
 * for each, and a call whose caller could not be told would never end. One for the process. Thread-safe.
 */
final class MemoryReserve {
    /** Enough to end some hundred calls, which give back what they hold meanwhile. */
    private static final int BYTES = 64 * 1024;

    private static volatile byte @Nullable [] reserve = new byte[BYTES];

    private MemoryReserve() {}

    /** Memory has run out: from here on there is some more. */
    static void use() {
        reserve = null;
    }

    /** Sees to it that there is a reserve from here on. At the begin of each connection. */
    static void keep() {
        if (reserve == null) {
            reserve = new byte[BYTES];
        }
    }
}
