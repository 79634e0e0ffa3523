package dev.rpcx.internal.server;

import dev.rpcx.internal.io.ReadingClock;

/** Progress of a request or an item of which only some parts have arrived. Event loop only. */
final class UnfinishedMessage {
    /**
     * Time at which the message began, by the {@link ReadingClock}, which stands still while this side does not read.
     */
    final long beganReadingNanos;

    /** Time at which the message began, by the event loop's clock, which does not stand still. */
    final long beganNanos;

    /**
     * Time at which the server last found that enough new bytes had arrived, by the {@link ReadingClock}. At first, the
     * time at which the message began.
     */
    long lastProgressNanos;

    /** Number of bytes of the message that have arrived since {@code lastProgressNanos}. */
    long newBytes;

    /** Number of bytes of the message that have arrived after its first frame. */
    long allBytes;

    UnfinishedMessage(long owedNanos, long nowNanos) {
        beganNanos = nowNanos;
        beganReadingNanos = owedNanos;
        lastProgressNanos = owedNanos;
    }
}
