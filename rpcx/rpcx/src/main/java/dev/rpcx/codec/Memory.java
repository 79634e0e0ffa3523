package dev.rpcx.codec;

/** What the objects of a message may take while it is read. */
@FunctionalInterface
public interface Memory {
    /**
     * Asks for room for what comes next, on the thread that reads. What was granted is not given back here: who grants
     * it knows how long the objects live.
     *
     * @param bytes an estimate, from 1
     * @return false if there is no such room now; then the message is refused with
     *     {@link CodecException.Code#NO_MEMORY}
     */
    boolean take(long bytes);

    /** A message takes so many bytes before it asks. Asked once for each message, before it is read. */
    default int unasked() {
        return In.FREE_BYTES;
    }

    /**
     * A message has been read.
     *
     * @param spare what it has not taken, of what it may take before it asks and of what was granted: 0 or more
     */
    default void isRead(long spare) {}
}
