package dev.rpcx.internal.client;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * Budget of one method for one kind of retry: an instance of a service has refused a call, and another instance gets
 * it. Such retries reveal an instance that refuses what the others take. If the other instance takes the call, the
 * retry costs nothing in the end, since it gives back what it has spent. If the other instance refuses the call too,
 * the retry has shown nothing new, and gives nothing back. The budget refills by ten retries a second, up to
 * {@link #MAX}.
 *
 * <p>Every instance refuses the calls of a caller without a valid token, and the calls of a method that no instance
 * has. Since this budget is separate from the {@link RetryBudget}, the refused calls do not reduce the retries and
 * hedges of all other calls. Each method has its own budget, so calls of a method that no instance has take nothing
 * from calls that one instance refuses and another takes. The budget refills with time and not with calls, since only
 * refused calls use it.
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
