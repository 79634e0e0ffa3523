package dev.rpcx;

/**
 * How a request or an item comes that is not whole yet. Its times are of {@link OwedTime}. It belongs to the event
 * loop.
 */
final class UnfinishedMessage {
    final long sinceNanos;

    /** When its bytes were looked at last. */
    long lookedNanos;

    /** How many have come since. */
    long newBytes;

    /** How many have come behind its first frame. */
    long allBytes;

    UnfinishedMessage(long owedNanos) {
        sinceNanos = owedNanos;
        lookedNanos = owedNanos;
    }
}
