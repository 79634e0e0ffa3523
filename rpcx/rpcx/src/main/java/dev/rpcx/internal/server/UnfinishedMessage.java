package dev.rpcx.internal.server;

import dev.rpcx.internal.io.ReadingClock;

/**
 * Progress of a request or an item that is not whole yet. Event loop only.
 */
final class UnfinishedMessage {
    /** Time at which the message began, by the {@link ReadingClock}. */
    final long sinceNanos;

    /** Time at which the message began, by the event loop's clock. */
    final long beganNanos;

    /** Time at which the message's bytes were last checked, by the {@link ReadingClock}. */
    long lookedNanos;

    /** Number of bytes that have come since {@code lookedNanos}. */
    long newBytes;

    /** Number of bytes that have come after the first frame. */
    long allBytes;

    UnfinishedMessage(long owedNanos, long nowNanos) {
        beganNanos = nowNanos;
        sinceNanos = owedNanos;
        lookedNanos = owedNanos;
    }
}
