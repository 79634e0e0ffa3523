package dev.rpcx;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Fails calls at once, without sending them, while most of the latest have failed for reasons of the service. After a
 * pause one call goes through as a trial: its success closes the circuit, its failure is another pause. A trial that takes
 * longer than a pause gives way to the next one, and decides nothing then; after one whose end says nothing, as it was
 * given too little time or cancelled, the next call is a trial at once.
 *
 * <p>Counts lie in a ring of seconds. A second that is reused is emptied by whoever comes first; counts that another
 * adds in that moment may be lost, which a share of many does not notice.
 */
final class CircuitBreaker {
    private static final int SECONDS = 10;
    private static final int LEAST_CALLS = 20;
    private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long CLOSED = Long.MIN_VALUE;

    /** A call goes through and decides nothing. */
    static final long GIVEN = CLOSED;

    static final long REFUSED = Long.MIN_VALUE + 1;

    private final double failureShare;
    private final LongSupplier clock;
    private final long begin;
    private final AtomicIntegerArray calls = new AtomicIntegerArray(SECONDS);
    private final AtomicIntegerArray failures = new AtomicIntegerArray(SECONDS);
    private final AtomicLong second = new AtomicLong();

    /**
     * When the pause ends, since {@link #begin}; {@link #CLOSED} where there is none. Even while a trial is under way,
     * of which it is the stamp, and odd once one has failed: so a trial whose end is told twice is told once.
     */
    private final AtomicLong pauseEnd = new AtomicLong(CLOSED);

    CircuitBreaker(double failureShare, LongSupplier clock) {
        this.failureShare = failureShare;
        this.clock = clock;
        this.begin = clock.getAsLong();
    }

    /**
     * A call asks.
     *
     * @return {@link #GIVEN}, {@link #REFUSED}, or which trial this call is: to be told to {@link #ended}
     */
    long permit() {
        long end = pauseEnd.get();
        if (end == CLOSED) {
            return GIVEN;
        }
        long now = now();
        long next = now + PAUSE_NANOS & ~1;
        // whoever moves the end is the trial; the others wait for what becomes of it, one pause at most
        return now >= end && pauseEnd.compareAndSet(end, next) ? next : REFUSED;
    }

    /**
     * How a call has ended. Only the latest trial closes an open circuit, and only by its success: calls from before say
     * nothing new.
     *
     * @param permit what the call was told
     */
    void ended(Health.Outcome outcome, long permit) {
        if (outcome == Health.Outcome.UNTOLD) {
            if (permit != GIVEN) {
                pauseEnd.compareAndSet(permit, now());
            }
            return;
        }
        boolean failed = outcome == Health.Outcome.FAILED;
        int at = slot();
        calls.incrementAndGet(at);
        if (failed) {
            failures.incrementAndGet(at);
        }
        if (permit != GIVEN && failed) {
            pauseEnd.compareAndSet(permit, afterPause() - 1 | 1);
        } else if (permit != GIVEN) {
            if (pauseEnd.compareAndSet(permit, CLOSED)) {
                for (int i = 0; i < SECONDS; i++) {
                    clear(i);
                }
            }
        } else if (failed && pauseEnd.get() == CLOSED && isTooMany()) {
            pauseEnd.compareAndSet(CLOSED, afterPause() - 1 | 1);
        }
    }

    private boolean isTooMany() {
        long all = 0;
        long failed = 0;
        for (int i = 0; i < SECONDS; i++) {
            all += calls.get(i);
            failed += failures.get(i);
        }
        return all >= LEAST_CALLS && failed >= all * failureShare;
    }

    private int slot() {
        long now = now() / TimeUnit.SECONDS.toNanos(1);
        long last = second.get();
        if (now > last && second.compareAndSet(last, now)) {
            for (long passed = Math.max(last + 1, now - SECONDS + 1); passed <= now; passed++) {
                clear((int) (passed % SECONDS));
            }
        }
        return (int) (now % SECONDS);
    }

    private void clear(int slot) {
        calls.set(slot, 0);
        failures.set(slot, 0);
    }

    private long afterPause() {
        return now() + PAUSE_NANOS;
    }

    private long now() {
        return clock.getAsLong() - begin;
    }
}
