package dev.rpcx;

import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/** How long to leave a server alone after failures in a row: doubles, and is spread so that clients do not come back all at once. */
final class Backoff {
    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /** Largest: a server that is back is found within 1 s. One attempt a second burdens nobody. */
    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(1);

    private Backoff() {}

    /**
     * Between half of the full time and all of it.
     *
     * @param failures in a row, from 1
     */
    static long nanos(int failures, RandomGenerator random) {
        long full = Math.min(MOST_NANOS, FIRST_NANOS << Math.min(failures - 1, 10));
        return full / 2 + random.nextLong(full / 2 + 1);
    }
}
