package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/**
 * Computes how long a client waits before the next try to connect. The pause doubles with each consecutive failure,
 * up to 1 s. The pause is partly random, so that clients do not all connect at the same time.
 */
public final class Backoff {
    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /**
     * Longest pause before a try to connect. One or two tries a second are no burden for a server, and a client
     * usually finds a server within 1 s after the server is back.
     */
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(1);

    private Backoff() {}

    /**
     * Returns a random pause in nanoseconds, between half of the full pause and the full pause. The full pause is 20 ms
     * after the first failure, and doubles with each further failure, up to 1 s.
     *
     * @param failures number of consecutive failed tries to connect, at least 1
     */
    public static long nanos(int failures, RandomGenerator random) {
        long full = Math.min(MAX_NANOS, FIRST_NANOS << Math.min(failures - 1, 10));
        return full / 2 + random.nextLong(full / 2 + 1);
    }
}
