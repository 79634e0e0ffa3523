package dev.rpcx.internal.client;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Refuses calls without sending them, after too large a fraction of the latest calls has failed because of the
 * service. The circuit is then called open. After a pause, one call is sent as a trial: its success closes the circuit,
 * and its failure begins another pause. After a trial that was cancelled, could not be sent or had too little time, the
 * next call is a trial, without a pause.
 *
 * <p>If a trial lasts longer than a pause, another trial begins, and the first success of a trial closes the circuit.
 * When a trial has failed, trials that began earlier no longer count.
 *
 * <p>Calls and failures are counted for each of the latest 10 seconds. A call or failure can be lost if one thread
 * clears a count while another thread increases the count. Such a loss hardly changes the fraction of failures.
 */
public final class CircuitBreaker {
    private static final int SECONDS = 10;
    private static final int MIN_CALLS = 20;
    static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Permit of a call that is sent as usual, and not as a trial. */
    public static final long PERMITTED = -1;

    public static final long REFUSED = -2;

    /**
     * State of an open circuit, that is, of one that refuses calls.
     *
     * @param pauseEnd time at which the pause ends and a trial can begin, in nanoseconds since {@link #begin}
     * @param latest number of the latest trial since the circuit opened; 0 if there was none
     * @param minDeciding smallest number of a trial whose outcome still counts. Trials that began before the circuit
     *     opened do not count. When a trial has failed, that trial and all trials with smaller numbers no longer count.
     */
    private record Open(long pauseEnd, long latest, long minDeciding) {}

    private final double failureFraction;
    private final LongSupplier clock;
    private final long begin;
    private final AtomicIntegerArray calls = new AtomicIntegerArray(SECONDS);
    private final AtomicIntegerArray failures = new AtomicIntegerArray(SECONDS);

    /**
     * The latest second for which calls were counted. Any thread moves it forward by a compare-and-set. The thread that
     * succeeds clears the counts of the seconds after the old value, up to the new value.
     */
    private final AtomicLong second = new AtomicLong();

    /**
     * Counter from which each call that tries to become a trial takes its number; 0 before the first such call. If two
     * calls try at the same time, only one becomes the trial, and the number of the other call is not used.
     */
    private final AtomicLong trials = new AtomicLong();

    /**
     * State of the open circuit; null while the circuit is closed, that is, while calls are sent as usual. Any thread
     * may replace the state. It does so by a compare-and-set, so that it overwrites no state that it has not seen.
     */
    private final AtomicReference<@Nullable Open> open = new AtomicReference<>();

    public CircuitBreaker(double failureFraction, LongSupplier clock) {
        this.failureFraction = failureFraction;
        this.clock = clock;
        this.begin = clock.getAsLong();
    }

    /**
     * Decides whether a call is sent as usual, sent as a trial, or refused.
     *
     * @return {@link #PERMITTED}, {@link #REFUSED}, or the number of the trial, from 1. The caller has to pass any
     *     result except {@code REFUSED} to {@link #ended}. The number of a trial has to be passed even if the call is
     *     never sent.
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
        // Several calls can come here at the same time, but only one can store the new end of the pause. That call is
        // the trial. Other calls are refused until the new pause has ended, or until this trial has ended without a
        // failure. A failure makes the pause longer.
        return open.compareAndSet(now, new Open(time + PAUSE_NANOS, trial, now.minDeciding)) ? trial : REFUSED;
    }

    /**
     * Records how a call has ended, and opens or closes the circuit if necessary. Only the success of a trial closes
     * the circuit. A success is any outcome except {@code FAILED} and {@code UNKNOWN}.
     *
     * <p>For a trial, this method can be called more than once, for example with {@code ANSWERED} when the server has
     * answered, and with {@code UNKNOWN} after the end of the call. If another outcome of the trial was recorded
     * before, {@code UNKNOWN} changes nothing. Otherwise, {@code UNKNOWN} lets the next call be a trial, unless a later
     * trial has begun.
     *
     * @param permit result of {@link #permit} for the call
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
        return all >= MIN_CALLS && failed >= all * failureFraction;
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
