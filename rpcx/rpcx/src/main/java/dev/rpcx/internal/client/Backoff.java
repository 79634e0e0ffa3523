package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/**
 * Pause before the next connection attempt after consecutive failures. The pause doubles with each failure, and has
 * jitter, so that clients do not come back all at once.
 */
public final class Backoff {
    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /** Longest pause: a server that is back is found within 1 s, and one connection attempt a second burdens nobody. */
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(1);

    private Backoff() {}

    /**
     * A random time between half of the full pause and all of it.
     *
     * @param failures number of consecutive failures, from 1
     */
    public static long nanos(int failures, RandomGenerator random) {
        long full = Math.min(MAX_NANOS, FIRST_NANOS << Math.min(failures - 1, 10));
        return full / 2 + random.nextLong(full / 2 + 1);
    }
}
