package dev.rpcx.internal.client;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Budget of one method for retries at another instance, after an instance of a service has refused a call. If the other
 * instance takes the call, the retry gives back what it has spent. If the other instance refuses the call too, the
 * retry gives nothing back. The budget refills by ten retries a second, up to {@link #MAX}.
 *
 * <p>Every instance refuses the calls of a caller without a valid token, and the calls of a method that no instance
 * has. These calls must not reduce the retries and hedges of other calls, so this budget is separate from the
 * {@link RetryBudget}, and each method has its own. The budget refills with time, since only refused calls use it.
 */
public final class RefusalBudget {
    /**
     * Largest budget, as a number of retries. It is as large as that of a {@link RetryBudget}: an instance may begin to
     * refuse while this number of calls is in flight to it.
     */
    public static final int MAX = 100;

    private static final long EARNED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Ticker ticker;

    // the following fields are guarded by this
    private int remaining = MAX;
    private long earnedNanos;

    public RefusalBudget(Ticker ticker) {
        this.ticker = ticker;
        this.earnedNanos = ticker.nanoTime();
    }

    /**
     * Spends one retry.
     *
     * @return false if none remains
     */
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

    /** Gives one retry back, since another instance has taken the call. */
    synchronized void giveBack() {
        remaining = Math.min(MAX, remaining + 1);
    }
}
