package dev.rpcx.codec;

/** Grants memory for the objects of a message while the message is read. */
@FunctionalInterface
public interface Memory {
    /**
     * Asks for memory for a message or its objects. The thread that reads the message calls this method. The memory is
     * not given back through this interface.
     *
     * @param bytes estimated number of bytes, including some for the objects that are read next; 1 or more
     * @return false if this memory is not available now; the message is then refused with
     *     {@link CodecException.Code#NO_MEMORY}
     */
    boolean take(long bytes);

    /**
     * Returns the number of bytes that a message and its objects may take without asking for memory; the default is 16
     * KiB. The codec calls this method once for each message, before the message is read.
     */
    default int freeBytes() {
        return In.FREE_BYTES;
    }

    /**
     * Called after a message has been read without an error.
     *
     * @param spare number of bytes that were available and that the message did not need, 0 or more. Available were the
     *     bytes of {@link #freeBytes}, and those that {@link #take} has granted
     */
    default void onRead(long spare) {}
}
