package dev.rpcx.internal.client;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Budget of a method for retries, at another instance, of calls that one instance of a service has refused. Such
 * retries find an instance that refuses what the others take. A retry that finds one costs nothing in the end: it gives
 * back what it has spent. A retry that is refused too has shown nothing new, and stays spent. The budget refills by
 * itself, by ten retries a second, up to {@link #MAX}.
 *
 * <p>The budget is separate from the {@link RetryBudget}, so that calls which every instance refuses (a caller without
 * a valid token, a method that no instance has) leave the retries and hedges of all other calls as they are. Each
 * method has its own budget: so calls of a method that no instance has take nothing from calls which one instance
 * refuses and another takes. The budget refills by time and not by calls, since only refused calls come here.
 */
public final class RefusalBudget {
    /**
     * Largest budget. It is as large as that of a {@link RetryBudget}: so many calls may be in flight to an instance
     * that begins to refuse.
     */
    public static final int MAX = 100;

    private static final long EARNED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Ticker ticker;

    // guarded by this
    private int remaining = MAX;
    private long earnedNanos;

    public RefusalBudget(Ticker ticker) {
        this.ticker = ticker;
        this.earnedNanos = ticker.nanoTime();
    }

    /** @return false if nothing is left */
    synchronized boolean spend() {
        long earned = (ticker.nanoTime() - earnedNanos) / EARNED_NANOS;
        earnedNanos += earned * EARNED_NANOS;
        remaining = (int) Math.min(MAX, remaining + earned);
        if (remaining == 0) {
            return false;
        }
        remaining--;
        return true;
    }

    /** Gives a retry back, since another instance has taken the call. */
    synchronized void giveBack() {
        remaining = Math.min(MAX, remaining + 1);
    }
}
