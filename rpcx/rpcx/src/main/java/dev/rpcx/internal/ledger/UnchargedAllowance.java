package dev.rpcx.internal.ledger;

/**
 * What each call of a server may hold without a charge, since charging a small call would cost more than the call. What
 * a call holds beyond that is charged and can be refused.
 *
 * <p>All handlers that are counted as running share a {@value #HEAP_DIVISOR}th of the heap equally, up to 24 KiB each.
 * Their number is limited by {@code Server.Builder.maxRunning} and by the number of places for calls. Calls that have
 * not begun, or whose handlers have ended, may be more numerous. Each of them may hold only
 * {@link #IDLE_METADATA_BYTES} and {@link #IDLE_OBJECT_BYTES}, and no buffer that has grown.
 *
 * @param bodyBytes largest size of the buffer for request and reply, in bytes
 * @param metadataBytes largest memory of the metadata, in bytes
 * @param objectBytes largest estimated memory of the objects of a request, in bytes
 */
public record UnchargedAllowance(int bodyBytes, int metadataBytes, int objectBytes) {
    static final int HEAP_DIVISOR = 16;

    /** Number of bytes of metadata that a call may hold while it is not counted as running: enough for a token. */
    public static final int IDLE_METADATA_BYTES = 512;

    public static final int IDLE_OBJECT_BYTES = 1024;

    /**
     * Largest message, in bytes, that is not charged while the place of its call is charged. There are no more such
     * messages than places, so their number is limited.
     */
    public static final int SMALL_BYTES = 4 * 1024;

    /** Allowance on a large heap: at least 3.66 GiB with the default of 10,000 running handlers. */
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
