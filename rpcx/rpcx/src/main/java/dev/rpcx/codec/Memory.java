package dev.rpcx.codec;

/** Grants memory for the objects of a message while the message is read. */
@FunctionalInterface
public interface Memory {
    /**
     * Asks for memory for the message or for its objects. The thread that reads the message calls this method. Granted
     * memory is not given back through this interface, because whoever grants it knows how long the objects live.
     *
     * @param bytes estimated number of bytes, 1 or more
     * @return false if this memory is not available now; the message is then refused with
     *     {@link CodecException.Code#NO_MEMORY}
     */
    boolean take(long bytes);

    /**
     * Returns the number of bytes that a message may take before it asks for memory; default 16 KiB. Called once for
     * each message, before the message is read.
     */
    default int freeBytes() {
        return In.FREE_BYTES;
    }

    /**
     * Called after a message has been read without an error.
     *
     * @param spare number of bytes, 0 or more, that the message could still have taken: the bytes that need no asking
     *     plus the bytes that were granted, minus the bytes that the message has taken
     */
    default void onRead(long spare) {}
}
