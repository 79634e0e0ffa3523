package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Counts how the calls to one instance end. An instance that fails several times in a row is left out for a while,
 * longer each time. Source: Envoy's outlier detection (5 in a row, 30 s), shortened, since here a trial costs one call.
 */
final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /** Failures further apart than this are no row. */
    private static final long FORGOTTEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Each such time in which the instance was not left out takes one from {@link #times}. Source: Envoy's interval of
     * 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** What the end of a call says of the instance that had it. */
    enum Outcome {
        ANSWERED,
        FAILED,
        /** Says nothing: the caller gave up, or the request never left. */
        UNTOLD;

        /** @param error null for a result */
        static Outcome of(@Nullable RPCXException error) {
            if (error == null) {
                return ANSWERED;
            }
            return switch (error.code()) {
                case DEADLINE_EXCEEDED, OVERLOADED, PROTOCOL -> FAILED;
                // a call that never left because the instance closes in peace says nothing against it
                case UNAVAILABLE -> error.executed() == RPCXException.Executed.NOT_EXECUTED ? UNTOLD : FAILED;
                case CANCELLED -> UNTOLD;
                // without the server's word: this side could not send what belongs to the call
                case INVALID, TOO_LARGE -> error.executed() == RPCXException.Executed.MAYBE ? UNTOLD : ANSWERED;
                case NOT_FOUND, HANDLER_FAILED, UNAUTHENTICATED -> ANSWERED;
            };
        }
    }

    private final Ticker ticker;

    /** Failures in a row. Calls that succeed only look at it. */
    private final AtomicInteger failures = new AtomicInteger();

    private volatile long lastFailureNanos;
    private volatile boolean out;
    private volatile long outUntilNanos;

    /** How many times {@link #OUT_NANOS} the instance is left out; under the cluster's lock. */
    private int times;

    Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /** @return whether the instance has failed often enough to be left out */
    boolean ended(Outcome outcome) {
        switch (outcome) {
            case ANSWERED -> {
                if (failures.get() != 0) {
                    failures.set(0);
                }
            }
            case FAILED -> {
                long now = ticker.nanoTime();
                if (now - lastFailureNanos > FORGOTTEN_NANOS) {
                    failures.set(0);
                }
                lastFailureNanos = now;
                return failures.incrementAndGet() >= FAILURES && !isOut();
            }
            case UNTOLD -> {}
        }
        return false;
    }

    /** Under the cluster's lock. */
    void leaveOut() {
        long now = ticker.nanoTime();
        long forgiven = times == 0 ? 0 : Math.max(0, now - outUntilNanos) / FORGIVEN_NANOS;
        times = (int) Math.min(Math.max(0, times - forgiven) + 1, MAX_TIMES);
        outUntilNanos = now + OUT_NANOS * times;
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
