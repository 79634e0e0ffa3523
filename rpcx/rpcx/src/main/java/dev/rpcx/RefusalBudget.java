package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;

/**
 * How many calls of a method that one instance of a service has refused may be tried once more at another, which is to
 * find an instance that refuses what the others take. A try that finds one costs nothing in the end: it gives back what
 * it has spent. One that is refused there too has told nothing new, and is spent. What is spent comes back by itself,
 * ten a second, up to {@link #MOST}.
 *
 * <p>Apart from the {@link RetryBudget}, so that calls which every instance refuses (a caller without a valid token, a
 * method that is nowhere) leave the retries and hedges of all others as they are. Each method has its own: so callers
 * of what is nowhere leave those alone whom one instance refuses what another has. By time and not by calls: only calls
 * that are refused come here.
 */
final class RefusalBudget {
    /**
     * As many as a {@link RetryBudget} saves: that many calls may be under way to an instance that begins to refuse.
     */
    static final int MOST = 100;

    private static final long EARNED_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Ticker ticker;

    // guarded by this
    private int left = MOST;
    private long earnedNanos;

    RefusalBudget(Ticker ticker) {
        this.ticker = ticker;
        this.earnedNanos = ticker.nanoTime();
    }

    /** @return false if nothing is left */
    synchronized boolean spend() {
        long earned = (ticker.nanoTime() - earnedNanos) / EARNED_NANOS;
        earnedNanos += earned * EARNED_NANOS;
        left = (int) Math.min(MOST, left + earned);
        if (left == 0) {
            return false;
        }
        left--;
        return true;
    }

    /** Another instance has taken the call. */
    synchronized void giveBack() {
        left = Math.min(MOST, left + 1);
    }
}
