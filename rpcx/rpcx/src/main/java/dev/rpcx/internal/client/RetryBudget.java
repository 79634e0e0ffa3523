package dev.rpcx.internal.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Budget for further attempts of calls: one for ten calls, so that in an outage the servers get at most 1.1 times the
 * calls. What is not used is kept, up to {@link #MAX}: it hides the loss of one instance with many calls in flight.
 * Source: Finagle's retry budget.
 */
public final class RetryBudget {
    private static final int RETRY = 10;
    private static final int FIRST = 10 * RETRY;
    private static final int MAX = 100 * RETRY;

    private final AtomicInteger tenths = new AtomicInteger(FIRST);

    /** Adds a tenth of an attempt for a call that is made. While nothing has failed lately this is a single read. */
    void called() {
        if (tenths.get() < MAX) {
            tenths.incrementAndGet();
        }
    }

    /** Gives back a further attempt that has not been sent. */
    void giveBack() {
        tenths.getAndUpdate(left -> Math.min(MAX, left + RETRY));
    }

    /** @return false if nothing is left */
    public boolean spend() {
        return tenths.getAndUpdate(left -> left >= RETRY ? left - RETRY : left) >= RETRY;
    }
}
