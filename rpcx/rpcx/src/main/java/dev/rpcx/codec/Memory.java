package dev.rpcx.codec;

/** Grants memory for the objects of a message while the message is read. */
@FunctionalInterface
public interface Memory {
    /**
     * Asks for memory for the message or its objects. Called by the thread that reads the message. The memory is not
     * given back through this interface.
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
     * @param spare number of bytes, 0 or more, that the message did not need of the free bytes and of the granted bytes
     */
    default void onRead(long spare) {}
}
