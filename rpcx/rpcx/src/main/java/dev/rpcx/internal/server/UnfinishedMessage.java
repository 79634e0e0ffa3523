package dev.rpcx.internal.server;

import dev.rpcx.internal.io.ReadingClock;

/**
 * Records when a message that is sent in parts began, and how fast the parts arrive. The message is a request or an
 * item of a stream. Used only on the event loop.
 */
final class UnfinishedMessage {
    /**
     * Time at which the message began, in nanoseconds of the {@link ReadingClock}. This clock stands still while the
     * server does not read from the connection.
     */
    final long beganReadingNanos;

    /** Time at which the message began, in nanoseconds of the event loop's clock, which never stands still. */
    final long beganNanos;

    /**
     * Time at which the server last found that enough new bytes of the message had arrived, in nanoseconds of the
     * {@link ReadingClock}. The first value is the time at which the message began.
     */
    long lastProgressNanos;

    /** Number of bytes of the message that have arrived since {@link #lastProgressNanos}. */
    long newBytes;

    /** Number of bytes of the message that have arrived, not counting the bytes of its first frame. */
    long allBytes;

    UnfinishedMessage(long owedNanos, long nowNanos) {
        beganNanos = nowNanos;
        beganReadingNanos = owedNanos;
        lastProgressNanos = owedNanos;
    }
}
