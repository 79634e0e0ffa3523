package dev.rpcx.internal.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Limits the retries of calls, and the second calls of hedges. Each new call adds a tenth of a retry to the budget, and
 * each retry or second call takes one retry from the budget. So in an outage, this budget pays for at most one retry or
 * second call for every ten new calls, plus the retries that the budget had kept before. The budget keeps up to 100
 * unused retries. The idea comes from Finagle's retry budget.
 *
 * <p>Two kinds of retries take nothing from this budget. The retries of refused calls are paid for by the
 * {@link RefusalBudget}. A retry costs nothing if no byte of the failed attempt was sent.
 */
public final class RetryBudget {
    private static final int RETRY = 10;
    private static final int FIRST = 10 * RETRY;
    private static final int MAX_TENTHS = 100 * RETRY;

    /**
     * The budget, in tenths of a retry. Any thread changes it. Threads that add a tenth at the same time can exceed
     * {@link #MAX_TENTHS} by some tenths.
     */
    private final AtomicInteger tenths = new AtomicInteger(FIRST);

    /** Adds a tenth of a retry to the budget, for a new call. */
    void called() {
        if (tenths.get() < MAX_TENTHS) {
            tenths.incrementAndGet();
        }
    }

    /** Puts back the retry that was taken for the second call of a hedge, because that call was never sent. */
    void giveBack() {
        tenths.getAndUpdate(left -> Math.min(MAX_TENTHS, left + RETRY));
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
