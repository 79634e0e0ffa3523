package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Whether one instance fails alone: none of its answers is a result, while two thirds of what the others answer in the
 * same time are. Calls are given to instances by chance, so requests that fail wherever they are made, one caller's bad
 * ones say, fail at all of them. That one instance has nothing else in 20 calls, and the others have a third of them at
 * most, comes about less than once in a million comparisons, whatever their share is. An absolute count of failed
 * answers would let that caller take an instance away from all. Source: the ejection by success rate of Envoy's outlier
 * detection, which compares hosts too, by standard deviations.
 */
final class Comparison {
    /** Answers of the suspect, and of all others together, that a comparison takes at least. */
    static final int MIN_CALLS = 20;

    /** Later answers belong to another comparison: what was true before need not be. */
    static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** What one more answer says. */
    enum Verdict {
        OPEN,
        /** It is over, and nothing is said against anybody. */
        OVER,
        /** The suspect is to be left out. */
        FAILS_ALONE
    }

    private final ClientAddress suspect;
    private final Ticker ticker;
    private final long endNanos;
    private final AtomicInteger faults = new AtomicInteger();
    private final AtomicInteger others = new AtomicInteger();
    private final AtomicInteger othersResults = new AtomicInteger();

    Comparison(ClientAddress suspect, Ticker ticker) {
        this.suspect = suspect;
        this.ticker = ticker;
        this.endNanos = ticker.nanoTime() + MAX_NANOS;
    }

    /** A call has ended at one of the instances that are compared. From any thread. */
    Verdict ended(ClientAddress where, Health.Outcome outcome) {
        if (ticker.nanoTime() - endNanos >= 0) {
            return Verdict.OVER;
        }
        switch (outcome) {
            case ANSWERED -> {
                if (where == suspect) {
                    return Verdict.OVER;
                }
                othersResults.incrementAndGet();
                others.incrementAndGet();
            }
            case FAULT -> {
                if (where == suspect) {
                    faults.incrementAndGet();
                } else {
                    others.incrementAndGet();
                }
            }
            case FAILED -> {
                if (where != suspect) {
                    others.incrementAndGet();
                }
            }
            case REFUSED, UNTOLD -> {}
        }
        int all = others.get();
        return faults.get() >= MIN_CALLS && all >= MIN_CALLS && othersResults.get() * 3L >= all * 2L
                ? Verdict.FAILS_ALONE
                : Verdict.OPEN;
    }

    ClientAddress suspect() {
        return suspect;
    }
}
