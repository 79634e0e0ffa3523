package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/**
 * Computes the pause before the next connection attempt. It doubles with each consecutive failure, up to 1 s, and has
 * jitter, so that clients do not all come back at the same time.
 */
public final class Backoff {
    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /** Longest pause. A server that is back is found within 1 s, and one connection attempt a second is no burden. */
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(1);

    private Backoff() {}

    /**
     * Returns a random pause in nanoseconds, from half of the full pause to the full pause. The full pause is 20 ms
     * after the first failure, and doubles with each further one, up to 1 s.
     *
     * @param failures number of consecutive failures, from 1
     */
    public static long nanos(int failures, RandomGenerator random) {
        long full = Math.min(MAX_NANOS, FIRST_NANOS << Math.min(failures - 1, 10));
        return full / 2 + random.nextLong(full / 2 + 1);
    }
}
