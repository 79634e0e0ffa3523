package dev.rpcx;

/**
 * How a request or an item comes that is not whole yet. It belongs to the event loop.
 */
final class UnfinishedMessage {
    /** When it began, as {@link OwedTime} goes. */
    final long sinceNanos;

    /** The same by the event loop's clock. */
    final long beganNanos;

    /** When its bytes were looked at last, as {@link OwedTime} goes. */
    long lookedNanos;

    /** How many have come since. */
    long newBytes;

    /** How many have come behind its first frame. */
    long allBytes;

    UnfinishedMessage(long owedNanos, long nowNanos) {
        beganNanos = nowNanos;
        sinceNanos = owedNanos;
        lookedNanos = owedNanos;
    }
}
