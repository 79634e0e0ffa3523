package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Counts how the calls to one instance end. An instance that fails several times in a row, or fails more than half of
 * its calls, is ejected for a while, longer each time. Source: the outlier detection of Envoy and of gRPC (proposal
 * A50), where an instance is ejected for 30 s, after 5 failures in a row or after a share of 85 % of at least 50 calls
 * in 10 s. Here an ejection is shorter and fewer calls are enough, since a trial costs one call. A share of half is
 * enough, since an instance that fails at once has the least load and so attracts calls. Unlike there, a call that was
 * given too little time for an answer is no failure: see {@link AnswerTimes}.
 *
 * <p>When its ejection is over, an instance is on trial until it answers a call: it is chosen for one call at a time,
 * and the first of these calls that fails ejects it again. A call that finds no other instance takes it all the same.
 */
public final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /** Minimum number of calls in a window for their share of failures to count. */
    private static final int MIN_CALLS = 20;

    /** Length of a window. A window begins with a failure, so successful calls count nothing while no call fails. */
    private static final long WINDOW_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Failures further apart than this time are not consecutive. */
    private static final long FORGOTTEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Each period of this length in which the instance was not ejected takes one from {@link #times}. Source: Envoy's
     * interval of 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Time within which a caller that has chosen an instance on trial sends its call, or does not send it at all. */
    private static final long CHOSEN_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Longest time of a trial, after which another trial begins beside it. */
    private static final long MAX_TRIAL_NANOS = OUT_NANOS * MAX_TIMES;

    /**
     * A server ends a call for its deadline only when less than one part in {@code EARLY} of the call's time is left,
     * but for network delay.
     */
    private static final int EARLY = 10;

    /** What the end of a call says about the instance that was called. */
    public enum Outcome {
        ANSWERED,
        /**
         * The instance has answered, and its handler has failed, or passes on that another service has failed. What the
         * caller asks for may be the reason, so this outcome counts against nobody, and is no result either.
         */
        FAULT,
        /**
         * The instance could not be reached, has refused the call before the handler began, or has not answered in
         * enough time.
         */
        FAILED,
        /**
         * The instance is there, and has refused the call, which may be its own fault: it may be of another service or
         * an older version, or unable to check who calls. Counts as failed once another instance takes the call.
         */
        REFUSED,
        /**
         * The end says nothing about the instance: the caller gave up, or this side has not sent the request, or has
         * not heard how the call ended.
         */
        UNKNOWN;

        static boolean isRefusal(RPCXException error) {
            return (error.code() == RPCXException.Code.NOT_FOUND || error.code() == RPCXException.Code.UNAUTHENTICATED)
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED;
        }

        /** Whether the instance has taken the call, whatever its handler made of it. */
        boolean isAnswer() {
            return this == ANSWERED || this == FAULT;
        }

        /**
         * @param error end of the call; null for a result
         * @param times answer times of the method that was called
         * @param givenNanos what was left of the call's time when it was sent
         * @param leftNanos what is left of the call's time now that it has ended
         */
        public static Outcome of(@Nullable RPCXException error, AnswerTimes times, long givenNanos, long leftNanos) {
            if (error == null
                    || error.code() != RPCXException.Code.DEADLINE_EXCEEDED
                    || error instanceof LocalFailure) {
                return of(error);
            }
            if (error.executed() == RPCXException.Executed.EXECUTED && leftNanos > givenNanos / EARLY) {
                // the handler passes on the end of a call of its own: the time of this call is not over
                return FAULT;
            }
            return times.isEnough(givenNanos) ? FAILED : UNKNOWN;
        }

        /** The same for a call that was given enough time, so that an exceeded deadline counts against the instance. */
        public static Outcome of(@Nullable RPCXException error) {
            if (error == null) {
                return ANSWERED;
            }
            return switch (error.code()) {
                // this side's own end is UNHEARD: its event loop was held up
                case DEADLINE_EXCEEDED -> error instanceof LocalFailure ? UNKNOWN : FAILED;
                case UNAVAILABLE, OVERLOADED, PROTOCOL -> {
                    if (error instanceof LocalFailure) {
                        // the instance closes in peace, takes no more calls, or this side has no memory for what it
                        // sends
                        yield UNKNOWN;
                    }
                    // such an error of a handler that has run concerns a service behind it
                    yield error.executed() == RPCXException.Executed.EXECUTED ? FAULT : FAILED;
                }
                case CANCELLED -> UNKNOWN;
                // MAYBE is not the server's word: this side could not send what belongs to the call
                case INVALID, TOO_LARGE -> error.executed() == RPCXException.Executed.MAYBE ? UNKNOWN : ANSWERED;
                case NOT_FOUND, UNAUTHENTICATED -> isRefusal(error) ? REFUSED : ANSWERED;
                case HANDLER_FAILED -> FAULT;
            };
        }
    }

    /**
     * Adds the route and the method to the error of a server that has no such method, since the error names neither.
     */
    static RPCXException named(RPCXException error, Route at, Object method) {
        return error.code() == RPCXException.Code.NOT_FOUND && Outcome.isRefusal(error)
                ? new RPCXException(
                        error.code(), at + ": " + method + ": " + error.getMessage(), error.executed(), null)
                : error;
    }

    /** Counts of the calls, and of those that failed, since the failure that opened the window. */
    private static final class Window {
        private final long endNanos;
        private final AtomicInteger calls = new AtomicInteger();
        private final AtomicInteger failed = new AtomicInteger();

        Window(long endNanos) {
            this.endNanos = endNanos;
        }

        /** @return whether more than half of the calls have failed, of {@code MIN_CALLS} or more */
        boolean failed() {
            return failed.incrementAndGet() * 2L > calls.incrementAndGet() && calls.get() >= MIN_CALLS;
        }
    }

    /**
     * State of an instance that was ejected and has not answered since. Its value is the time from which a call may
     * have the trial: the end of the ejection, then that of the latest trial.
     */
    private static final class Ejection extends AtomicLong {
        private final long untilNanos;

        Ejection(long untilNanos) {
            super(untilNanos);
            this.untilNanos = untilNanos;
        }

        boolean isOnTrial(long now) {
            return now - untilNanos >= 0;
        }

        boolean isFree(long now) {
            return isOnTrial(now) && now - get() >= 0;
        }

        /** @return false if the ejection is not over, or another call has the trial */
        boolean take(long now) {
            long last = get();
            return isOnTrial(now) && now - last >= 0 && compareAndSet(last, now + CHOSEN_NANOS);
        }

        /**
         * Gives back a trial whose call is not sent. If more than {@code CHOSEN_NANOS} of the trial are left, it is
         * that of another call, which has been sent, and stays.
         */
        void giveBack(long now) {
            long last = get();
            if (last - now > 0 && last - now <= CHOSEN_NANOS) {
                compareAndSet(last, now);
            }
        }
    }

    private final Ticker ticker;

    /** Consecutive failures. Calls that succeed write it only where it is not 0. */
    private final AtomicInteger failures = new AtomicInteger();

    /** Null while no call has failed lately. If two threads open a window at once, it loses one call, and no more. */
    private volatile @Nullable Window window;

    private volatile long lastFailureNanos;

    /** Null for a healthy instance, as nearly all are: the choice of an instance reads this field alone. */
    private final AtomicReference<@Nullable Ejection> out = new AtomicReference<>();

    /** End of the latest ejection. Guarded by the cluster. */
    private long outUntilNanos;

    /** Length of the latest ejection, as a multiple of {@link #OUT_NANOS}. Guarded by the cluster. */
    private int times;

    public Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /** Like {@link #ended(Outcome, long)}, as for a call that is sent now. */
    public boolean ended(Outcome outcome) {
        return ended(outcome, ticker.nanoTime());
    }

    /**
     * Records that a call has ended.
     *
     * @param begunNanos when the call was sent: a call that was sent before the ejection was over is no trial
     * @return whether the instance has failed often enough to be ejected
     */
    public boolean ended(Outcome outcome, long begunNanos) {
        if (outcome.isAnswer()) {
            answered();
            return false;
        }
        Ejection left = out.get();
        boolean isTrial = false;
        if (left != null && left.isOnTrial(begunNanos)) {
            left.set(ticker.nanoTime());
            isTrial = true;
        }
        return outcome == Outcome.FAILED && failed(isTrial);
    }

    private boolean failed(boolean isTrial) {
        long now = ticker.nanoTime();
        if (now - lastFailureNanos > FORGOTTEN_NANOS) {
            failures.set(0);
        }
        lastFailureNanos = now;
        boolean isTooMuch = failures.incrementAndGet() >= FAILURES | isShareTooLarge(now) | isTrial;
        return isTooMuch && !isEjected();
    }

    private void answered() {
        if (failures.get() != 0) {
            failures.set(0);
        }
        Ejection left = out.get();
        if (left != null && left.isOnTrial(ticker.nanoTime())) {
            out.compareAndSet(left, null);
        }
        Window open = window;
        if (open == null) {
            return;
        }
        if (ticker.nanoTime() - open.endNanos < 0) {
            open.calls.incrementAndGet();
        } else {
            window = null;
        }
    }

    private boolean isShareTooLarge(long now) {
        Window open = window;
        if (open == null || now - open.endNanos >= 0) {
            // the failure that opens a window does not count in it, since there would be no window without it
            window = new Window(now + WINDOW_NANOS);
            return false;
        }
        return open.failed();
    }

    /** Ejects the instance. The caller holds the cluster's lock. */
    public void eject() {
        long now = ticker.nanoTime();
        long forgiven = times == 0 ? 0 : Math.max(0, now - outUntilNanos) / FORGIVEN_NANOS;
        times = (int) Math.min(Math.max(0, times - forgiven) + 1, MAX_TIMES);
        outUntilNanos = now + OUT_NANOS * times;
        out.set(new Ejection(outUntilNanos));
        failures.set(0);
        window = null;
    }

    /** Compares by the time at which the instances come back. The caller holds the cluster's lock. */
    int comesBackBefore(Health other) {
        return Long.signum(outUntilNanos - other.outUntilNanos);
    }

    /** Whether the instance is ejected, and the ejection is not over yet. */
    public boolean isEjected() {
        Ejection left = out.get();
        return left != null && !left.isOnTrial(ticker.nanoTime());
    }

    /** Whether the instance was ejected and has answered nothing since. */
    boolean isUnproven() {
        return out.get() != null;
    }

    /**
     * Whether the instance may be chosen: it is healthy, or on trial and no call has the trial. Runs for every call.
     */
    public boolean isFree() {
        Ejection left = out.get();
        return left == null || left.isFree(ticker.nanoTime());
    }

    /**
     * Chooses the instance for a call that is about to be sent, and takes the trial if the instance is on trial. Runs
     * for every call.
     *
     * @return false if the instance is ejected, or another call has the trial
     */
    boolean choose() {
        Ejection left = out.get();
        return left == null || left.take(ticker.nanoTime());
    }

    /**
     * Called when a call that has chosen the instance cannot be sent. That says nothing of the instance, so the next
     * call has the trial.
     */
    void unsent() {
        Ejection left = out.get();
        if (left != null) {
            left.giveBack(ticker.nanoTime());
        }
    }

    /**
     * Called when a call is about to be sent to the instance. If the call is a trial, no other trial begins until the
     * call's deadline, {@code MAX_TRIAL_NANOS} at most, or until the call has ended. Runs for every call.
     */
    public void begins(long deadlineNanos) {
        Ejection left = out.get();
        if (left == null) {
            return;
        }
        long now = ticker.nanoTime();
        if (left.isOnTrial(now)) {
            left.set(now + Math.min(MAX_TRIAL_NANOS, Math.max(0, deadlineNanos - now)));
        }
    }
}
