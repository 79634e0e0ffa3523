package dev.rpcx.codec;

/** Grants memory for the objects of a message while the message is read. */
@FunctionalInterface
public interface Memory {
    /**
     * Asks for memory for what is read next, on the thread that reads the message. What is granted is not returned
     * through this interface: whoever grants it knows how long the objects live.
     *
     * @param bytes estimated number of bytes, from 1
     * @return false if that much memory is not available now; the message is then refused with
     *     {@link CodecException.Code#NO_MEMORY}
     */
    boolean take(long bytes);

    /**
     * Returns the number of bytes that a message takes before it asks for more. Called once for each message, before
     * the message is read.
     */
    default int unasked() {
        return In.FREE_BYTES;
    }

    /**
     * Called when a message has been read.
     *
     * @param spare number of bytes, 0 or more, that the message was allowed to take, without asking or by a grant, and
     *     has not taken
     */
    default void isRead(long spare) {}
}
