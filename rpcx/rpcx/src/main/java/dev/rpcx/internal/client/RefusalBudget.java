package dev.rpcx.internal.client;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Limits how often the refused calls of one method are retried at another instance. If the other instance takes the
 * call, the budget gets the retry back. The budget also gets ten new retries a second, up to {@link #MAX_RETRIES}.
 *
 * <p>Every instance refuses the calls of a caller without a valid token, and the calls of a method that no instance
 * has. These calls must not use up the retries and hedges of other calls. So this budget is separate from the
 * {@link RetryBudget}, and each method has a budget of its own.
 */
public final class RefusalBudget {
    /**
     * Maximum number of retries that the budget holds. The number is the same as for a {@link RetryBudget}. For
     * example, if an instance begins to refuse calls while 100 calls are in flight to it, a full budget can retry all
     * of them.
     */
    public static final int MAX_RETRIES = 100;

    private static final long EARNED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Ticker ticker;

    // the following fields are guarded by this
    private int remaining = MAX_RETRIES;
    private long earnedNanos;

    public RefusalBudget(Ticker ticker) {
        this.ticker = ticker;
        this.earnedNanos = ticker.nanoTime();
    }

    /**
     * Takes one retry from the budget.
     *
     * @return false if no retry is left
     */
    synchronized boolean spend() {
        long earned = (ticker.nanoTime() - earnedNanos) / EARNED_NANOS;
        earnedNanos += earned * EARNED_NANOS;
        remaining = (int) Math.min(MAX_RETRIES, remaining + earned);
        if (remaining == 0) {
            return false;
        }
        remaining--;
        return true;
    }

    /** Puts one retry back, because another instance has taken the refused call. */
    synchronized void giveBack() {
        remaining = Math.min(MAX_RETRIES, remaining + 1);
    }
}
