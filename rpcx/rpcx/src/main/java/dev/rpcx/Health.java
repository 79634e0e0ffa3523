package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * How the calls to one instance end. An instance that fails several times in a row is left out for a while, longer each time.
 * Source: Envoy's outlier detection (5 in a row, 30 s), shortened, since here a trial costs one call.
 */
final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MOST_TIMES = 15;

    /** Failures in a row. Calls that succeed only look at it. */
    private final AtomicInteger failures = new AtomicInteger();

    private volatile boolean out;
    private volatile long outUntilNanos;
    private int times;
    private final Ticker ticker;

    Health(Ticker ticker) {
        this.ticker = ticker;
    }

    void succeeded() {
        if (failures.get() != 0) {
            failures.set(0);
        }
    }

    /** @return whether the instance has failed often enough to be left out */
    boolean failed(RPCXException error) {
        if (!isInstances(error)) {
            succeeded();
            return false;
        }
        return failures.incrementAndGet() >= FAILURES && !isOut();
    }

    /** Whether the error speaks of the instance rather than of the call. */
    static boolean isInstances(RPCXException error) {
        return switch (error.code()) {
            case DEADLINE_EXCEEDED, OVERLOADED, PROTOCOL -> true;
            // a call that never left because the instance closes in peace says nothing against it
            case UNAVAILABLE -> error.executed() != RPCXException.Executed.NOT_EXECUTED;
            case CANCELLED, NOT_FOUND, INVALID, HANDLER_FAILED, TOO_LARGE, UNAUTHENTICATED -> false;
        };
    }

    /** Under the cluster's lock. */
    void leaveOut() {
        times = Math.min(times + 1, MOST_TIMES);
        outUntilNanos = ticker.nanoTime() + OUT_NANOS * times;
        out = true;
        failures.set(0);
    }

    boolean isOut() {
        if (!out) {
            return false;
        }
        if (ticker.nanoTime() - outUntilNanos < 0) {
            return true;
        }
        out = false;
        return false;
    }
}
