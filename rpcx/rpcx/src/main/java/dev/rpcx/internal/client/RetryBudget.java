package dev.rpcx.internal.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Budget for further attempts of calls. Ten calls pay for one further attempt, so that in an outage the servers get at
 * most 1.1 times the calls. What is not used is kept, up to {@link #MAX}: it pays for the further attempts that hide
 * the loss of one instance with many calls in flight. Source: Finagle's retry budget.
 */
public final class RetryBudget {
    private static final int RETRY = 10;
    private static final int FIRST = 10 * RETRY;
    private static final int MAX = 100 * RETRY;

    private final AtomicInteger tenths = new AtomicInteger(FIRST);

    /**
     * Adds a tenth of an attempt for a call that is made. When the budget is full, as it is after many calls without
     * failures, this method is a single read.
     */
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
     * Spends the cost of one further attempt.
     *
     * @return false if less than that remains; nothing is spent in this case
     */
    public boolean spend() {
        return tenths.getAndUpdate(left -> left >= RETRY ? left - RETRY : left) >= RETRY;
    }
}
