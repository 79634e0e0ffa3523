package dev.rpcx.internal.ledger;

/**
 * What each call of a server may hold without being charged for it. To charge for a small call would cost more than the
 * call. All calls together may hold a fixed part of the heap in this way. So on a small heap each call may hold less.
 * What a call holds beyond that is charged and can be refused.
 *
 * <p>All handlers that are counted as running share a {@value #HEAP_DIVISOR}th of the heap equally, but no handler gets
 * more than 24 KiB. There are at most as many of these handlers as {@code Server.Builder.maxRunning} says, or as there
 * are places for calls if that is less. There may be more calls that are not counted as running, because they have not
 * begun or because their handlers have ended. So each of these calls may hold only {@link #IDLE_METADATA_BYTES} and
 * {@link #IDLE_OBJECT_BYTES}, and no buffer that has grown.
 *
 * @param bodyBytes largest number of bytes of the buffer for request and reply
 * @param metadataBytes largest number of bytes of memory of the metadata
 * @param objectBytes largest number of bytes of memory, estimated, of the objects into which a request is read
 */
public record UnchargedAllowance(int bodyBytes, int metadataBytes, int objectBytes) {
    static final int HEAP_DIVISOR = 16;

    /** Number of bytes of metadata that a call may hold while it is not counted as running: enough for a token. */
    public static final int IDLE_METADATA_BYTES = 512;

    public static final int IDLE_OBJECT_BYTES = 1024;

    /**
     * A message of up to this many bytes is not charged while the place of its call is charged. There are no more such
     * messages than places, and to charge for them would cost more than it saves.
     */
    public static final int SMALL_BYTES = 4 * 1024;

    /**
     * Allowance on a large heap. With the default settings, which allow 10,000 running handlers, a heap of at least
     * 3.66 GiB is large enough.
     */
    static final UnchargedAllowance MAX = new UnchargedAllowance(SMALL_BYTES, 4 * 1024, 16 * 1024);

    private static final int MAX_BYTES = MAX.bodyBytes + MAX.metadataBytes + MAX.objectBytes;

    /**
     * Computes the allowance for a heap of this size.
     *
     * @param running largest number of handlers that are counted as running at once, at least 1
     */
    static UnchargedAllowance of(long heapBytes, long running) {
        long each = Math.min(MAX_BYTES, heapBytes / HEAP_DIVISOR / running);
        return new UnchargedAllowance(
                (int) (MAX.bodyBytes * each / MAX_BYTES), (int) (MAX.metadataBytes * each / MAX_BYTES), (int)
                        (MAX.objectBytes * each / MAX_BYTES));
    }
}
