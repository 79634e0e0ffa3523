package dev.rpcx;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many calls may be made a second time: one for ten that were made a first time, so that in an outage the servers get at most 1.1 times
 * the calls. What was not used is kept, up to {@link #MOST}: it hides the loss of one instance with many calls under way.
 * Source: Finagle's retry budget.
 */
final class RetryBudget {
    private static final int RETRY = 10;
    private static final int FIRST = 10 * RETRY;
    private static final int MOST = 100 * RETRY;

    private final AtomicInteger tenths = new AtomicInteger(FIRST);

    /** A call is made. When nothing has failed lately this is one look. */
    void called() {
        if (tenths.get() < MOST) {
            tenths.incrementAndGet();
        }
    }

    /** What was to be made a second time has not been sent. */
    void giveBack() {
        tenths.getAndUpdate(left -> Math.min(MOST, left + RETRY));
    }

    /** @return false if nothing is left */
    boolean spend() {
        return tenths.getAndUpdate(left -> left >= RETRY ? left - RETRY : left) >= RETRY;
    }
}
