package dev.rpcx.internal.ledger;

/**
 * What one call of a server is allowed to hold without a charge in the {@link Ledger}. Charging a small call would cost
 * more than the call itself. What a call holds beyond the allowance is charged and can be refused.
 *
 * <p>Only calls whose handlers count as running, and whose methods return no stream, have this allowance. Their number
 * is limited by {@code Server.Builder.maxRunning} and by the number of places for calls. All these calls together take
 * at most a {@value #HEAP_DIVISOR}th of the heap, and each takes at most 24 KiB. All other calls can be more numerous.
 * Each of them is allowed to hold, without a charge, only {@link #MAX_IDLE_METADATA_BYTES} of metadata,
 * {@link #MAX_IDLE_OBJECT_BYTES} of objects, and a buffer of the initial size for request and reply.
 *
 * @param bodyBytes largest size, in bytes, of the buffer for request and reply
 * @param metadataBytes largest memory, in bytes, of the metadata
 * @param objectBytes largest estimated memory, in bytes, of the objects of a request
 */
public record UnchargedAllowance(int bodyBytes, int metadataBytes, int objectBytes) {
    static final int HEAP_DIVISOR = 16;

    /**
     * Number of bytes of metadata that a call without the allowance may hold without a charge. A call has no allowance
     * while its handler does not count as running, or if its method returns a stream. The number is enough for an
     * access token.
     */
    public static final int MAX_IDLE_METADATA_BYTES = 512;

    public static final int MAX_IDLE_OBJECT_BYTES = 1024;

    /**
     * Largest size, in bytes, of a message that is not charged. A small heap can lower this size for a server: see
     * {@code bodyBytes}. At a server, each such message belongs to a call that is charged as {@link Resource#CALLS}, so
     * the number of such messages is limited. Up to this size, the incomplete frame and the socket queue of a
     * connection are not charged either.
     */
    public static final int MAX_SMALL_BYTES = 4 * 1024;

    /**
     * Largest allowance. With the default limit of 10,000 running handlers, a heap of at least 3.66 GiB gives this
     * allowance.
     */
    static final UnchargedAllowance MAX_ALLOWANCE = new UnchargedAllowance(MAX_SMALL_BYTES, 4 * 1024, 16 * 1024);

    private static final int MAX_BYTES =
            MAX_ALLOWANCE.bodyBytes + MAX_ALLOWANCE.metadataBytes + MAX_ALLOWANCE.objectBytes;

    /**
     * Computes the allowance for a heap of the given size.
     *
     * @param running largest number of handlers that count as running at once, at least 1
     */
    static UnchargedAllowance of(long heapBytes, long running) {
        long each = Math.min(MAX_BYTES, heapBytes / HEAP_DIVISOR / running);
        return new UnchargedAllowance(
                (int) (MAX_ALLOWANCE.bodyBytes * each / MAX_BYTES),
                (int) (MAX_ALLOWANCE.metadataBytes * each / MAX_BYTES),
                (int) (MAX_ALLOWANCE.objectBytes * each / MAX_BYTES));
    }
}
