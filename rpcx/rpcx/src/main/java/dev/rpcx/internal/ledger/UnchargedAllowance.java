package dev.rpcx.internal.ledger;

/**
 * What each call of a server may hold without being charged for it: charging for a small call would cost more than the
 * call. All calls together may hold a fixed part of the heap in this way, so on a small heap each may hold less, and
 * what is beyond is charged and can be refused.
 *
 * <p>A handler that is counted among those that run has its share of a {@value #HEAP_PART}th of the heap, but no more
 * than 24 KiB. There are at most as many of these handlers as {@code Server.Builder.maxRunning} says, or as there are
 * places. Calls that are counted nowhere, because they have not begun or their handlers have ended, may be more
 * numerous: each may hold {@link #IDLE_METADATA_BYTES} and {@link #IDLE_OBJECT_BYTES}, and no buffer that has grown.
 *
 * @param bodyBytes bytes of the buffer for request and reply
 * @param metadataBytes bytes of memory that the metadata take
 * @param objectBytes bytes of memory that the objects take which a request is read into, estimated
 */
public record UnchargedAllowance(int bodyBytes, int metadataBytes, int objectBytes) {
    static final int HEAP_PART = 16;

    /** Bytes of metadata that a call may hold which is counted nowhere: enough for a token. */
    public static final int IDLE_METADATA_BYTES = 512;

    public static final int IDLE_OBJECT_BYTES = 1024;

    /**
     * A message of up to this many bytes is not charged while its place is charged: there are as many such messages as
     * there are places, and charging would cost more than it saves.
     */
    public static final int SMALL_BYTES = 4 * 1024;

    /** Limits where the heap is large enough, which is from 3.66 GiB on with the standard settings. */
    static final UnchargedAllowance MAX = new UnchargedAllowance(SMALL_BYTES, 4 * 1024, 16 * 1024);

    private static final int MAX_BYTES = MAX.bodyBytes + MAX.metadataBytes + MAX.objectBytes;

    /** @param running largest number of handlers that are counted at once, from 1 */
    static UnchargedAllowance of(long heapBytes, long running) {
        long each = Math.min(MAX_BYTES, heapBytes / HEAP_PART / running);
        return new UnchargedAllowance(
                (int) (MAX.bodyBytes * each / MAX_BYTES), (int) (MAX.metadataBytes * each / MAX_BYTES), (int)
                        (MAX.objectBytes * each / MAX_BYTES));
    }
}
