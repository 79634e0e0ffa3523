package dev.rpcx.internal.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Budget for retries and hedges. Each call adds a tenth of a retry, so in an outage the servers get at most 1.1 times
 * the calls. Unused retries are kept, up to {@link #MAX}. Source: Finagle's retry budget.
 */
public final class RetryBudget {
    private static final int RETRY = 10;
    private static final int FIRST = 10 * RETRY;
    private static final int MAX = 100 * RETRY;

    private final AtomicInteger tenths = new AtomicInteger(FIRST);

    /** Adds a tenth of a retry, for a call that is made. */
    void called() {
        if (tenths.get() < MAX) {
            tenths.incrementAndGet();
        }
    }

    /** Gives back the cost of a further attempt that has not been sent. */
    void giveBack() {
        tenths.getAndUpdate(left -> Math.min(MAX, left + RETRY));
    }

    /**
     * Takes one retry from the budget.
     *
     * @return false if the budget has less than one retry; then the budget is unchanged
     */
    public boolean spend() {
        return tenths.getAndUpdate(left -> left >= RETRY ? left - RETRY : left) >= RETRY;
    }
}
