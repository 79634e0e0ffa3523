package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Fails calls without sending them, while most of the latest calls have failed for reasons of the service. After a
 * pause, one call is sent as a trial. If it succeeds, the circuit closes. If it fails, another pause begins. If it
 * takes longer than a pause, another trial begins beside it, and the first answer closes the circuit, unless a later
 * trial has failed. A trial that had too little time or was cancelled decides nothing: the next call is a trial,
 * without a pause.
 *
 * <p>Calls and failures are counted for each second, in a ring. Counts that a thread adds while another clears an entry
 * may be lost, which does not matter for a share of many calls.
 */
public final class CircuitBreaker {
    private static final int SECONDS = 10;
    private static final int MIN_CALLS = 20;
    static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Permit of a call that goes through and is not a trial. */
    public static final long PERMITTED = -1;

    public static final long REFUSED = -2;

    /**
     * State of an open circuit.
     *
     * @param pauseEnd time before which no trial begins, in nanoseconds since {@link #begin}
     * @param latest number of the latest trial; 0 if there was none since the circuit opened
     * @param minDeciding smallest number of a trial that still decides about the circuit: earlier ones began before the
     *     circuit opened, or no later than a trial that has failed
     */
    private record Open(long pauseEnd, long latest, long minDeciding) {}

    private final double failureShare;
    private final LongSupplier clock;
    private final long begin;
    private final AtomicIntegerArray calls = new AtomicIntegerArray(SECONDS);
    private final AtomicIntegerArray failures = new AtomicIntegerArray(SECONDS);
    private final AtomicLong second = new AtomicLong();

    /** Number of the latest trial; trials are numbered from 1. */
    private final AtomicLong trials = new AtomicLong();

    /** State of the open circuit; null while the circuit is closed. */
    private final AtomicReference<@Nullable Open> open = new AtomicReference<>();

    public CircuitBreaker(double failureShare, LongSupplier clock) {
        this.failureShare = failureShare;
        this.clock = clock;
        this.begin = clock.getAsLong();
    }

    /**
     * Decides whether a call goes through.
     *
     * @return {@link #PERMITTED}, {@link #REFUSED}, or the number of the trial that this call is, which has to be
     *     passed to {@link #ended}
     */
    public long permit() {
        Open now = open.get();
        if (now == null) {
            return PERMITTED;
        }
        long time = now();
        if (time < now.pauseEnd) {
            return REFUSED;
        }
        long trial = trials.incrementAndGet();
        // The call that moves the end of the pause is the trial. Other calls are refused until the trial has decided,
        // but for one pause at most.
        return open.compareAndSet(now, new Open(time + PAUSE_NANOS, trial, now.minDeciding)) ? trial : REFUSED;
    }

    /**
     * Records how a call has ended. Only the success of a trial closes an open circuit. For a trial, may be called more
     * than once: with {@code ANSWERED} when the server has answered, and again with {@code UNKNOWN}, which says
     * nothing, after the end.
     *
     * @param permit result of {@code permit()} for the call
     */
    public void ended(Health.Outcome outcome, long permit) {
        boolean isTrial = permit != PERMITTED;
        if (outcome == Health.Outcome.UNKNOWN) {
            Open now = open.get();
            if (isTrial && now != null && now.latest == permit && permit >= now.minDeciding) {
                open.compareAndSet(now, new Open(now(), permit, now.minDeciding));
            }
            return;
        }
        boolean failed = outcome == Health.Outcome.FAILED;
        int at = secondIndex();
        calls.incrementAndGet(at);
        if (failed) {
            failures.incrementAndGet(at);
        }
        if (isTrial) {
            decide(permit, failed);
        } else if (failed && open.get() == null && isTooMany()) {
            open.compareAndSet(null, new Open(now() + PAUSE_NANOS, 0, trials.get() + 1));
        }
    }

    private void decide(long trial, boolean failed) {
        while (true) {
            Open now = open.get();
            if (now == null || trial < now.minDeciding) {
                return;
            }
            long pauseEnd = trial == now.latest ? now() + PAUSE_NANOS : now.pauseEnd;
            Open next = failed ? new Open(pauseEnd, now.latest, trial + 1) : null;
            if (open.compareAndSet(now, next)) {
                if (next == null) {
                    for (int i = 0; i < SECONDS; i++) {
                        clear(i);
                    }
                }
                return;
            }
        }
    }

    private boolean isTooMany() {
        long all = 0;
        long failed = 0;
        for (int i = 0; i < SECONDS; i++) {
            all += calls.get(i);
            failed += failures.get(i);
        }
        return all >= MIN_CALLS && failed >= all * failureShare;
    }

    private int secondIndex() {
        long now = now() / TimeUnit.SECONDS.toNanos(1);
        long last = second.get();
        if (now > last && second.compareAndSet(last, now)) {
            for (long passed = Math.max(last + 1, now - SECONDS + 1); passed <= now; passed++) {
                clear((int) (passed % SECONDS));
            }
        }
        return (int) (now % SECONDS);
    }

    private void clear(int index) {
        calls.set(index, 0);
        failures.set(index, 0);
    }

    private long now() {
        return clock.getAsLong() - begin;
    }
}
