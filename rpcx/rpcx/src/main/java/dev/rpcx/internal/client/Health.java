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
 * its calls, is ejected for a while, and each time for longer. Source: the outlier detection of Envoy and of gRPC
 * (proposal A50). Here an ejection is shorter than their 30 s and fewer calls are enough, since a trial costs one call.
 * A share of half is enough instead of 85 %, since an instance that fails immediately has the least load and attracts
 * calls. A call that had too little time for an answer is no failure: see {@link AnswerTimes}.
 *
 * <p>When its ejection is over, an instance is on trial until it answers a call. It is chosen for one call at a time,
 * and the first of these calls that fails ejects it again. If a call has no other instance, even one that is ejected or
 * on trial is used.
 */
public final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /** Minimum number of calls in a window. With fewer calls, the share of failures does not count. */
    private static final int MIN_CALLS = 20;

    /** Length of a window. A window begins with a failure: while no call fails, nothing is counted. */
    private static final long WINDOW_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Failures that are further apart than this are not consecutive. */
    private static final long FORGOTTEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Each period of this length in which the instance was not ejected reduces {@link #times} by 1. Source: Envoy's
     * interval of 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Maximum time from the choice of an instance on trial until the call is sent. */
    private static final long CHOSEN_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Longest time of a trial. After this time, another trial begins beside it. */
    private static final long MAX_TRIAL_NANOS = OUT_NANOS * MAX_TIMES;

    /**
     * If a call ends with DEADLINE_EXCEEDED while more than its whole time divided by this number remains, its handler
     * has passed on the exceeded deadline of another call that the handler has made.
     */
    private static final int EARLY = 10;

    /** What the end of a call says about the instance that was called. */
    public enum Outcome {
        ANSWERED,
        /**
         * The instance has answered: its handler has failed, or passes on the failure of another service. Counts
         * against nobody, since the reason may lie in what the caller asks for.
         */
        FAULT,
        /**
         * The instance could not be reached, has refused the call before the handler began, or has not answered
         * although the call had enough time.
         */
        FAILED,
        /**
         * The instance has refused the call. That may be the instance's own fault: it may belong to another service,
         * have an older version, or be unable to check who calls. Counts as a failure if another instance takes the
         * call.
         */
        REFUSED,
        /**
         * The end says nothing about the instance: the caller gave up, this side has not sent the request, or this side
         * does not know how the call ended.
         */
        UNKNOWN;

        static boolean isRefusal(RPCXException error) {
            return (error.code() == RPCXException.Code.NOT_FOUND || error.code() == RPCXException.Code.UNAUTHENTICATED)
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED;
        }

        /** Whether the instance has taken the call, whatever its handler did with it. */
        boolean isAnswer() {
            return this == ANSWERED || this == FAULT;
        }

        /**
         * Returns the outcome of a call.
         *
         * @param error error with which the call ended; null for a result
         * @param times answer times of the method that was called
         * @param givenNanos remaining time of the call when it was sent
         * @param leftNanos remaining time of the call when it ended
         */
        public static Outcome of(@Nullable RPCXException error, AnswerTimes times, long givenNanos, long leftNanos) {
            if (error == null
                    || error.code() != RPCXException.Code.DEADLINE_EXCEEDED
                    || error instanceof LocalFailure) {
                return of(error);
            }
            if (error.executed() == RPCXException.Executed.EXECUTED && leftNanos > givenNanos / EARLY) {
                // the handler passes on the exceeded deadline of a call that it has made itself
                return FAULT;
            }
            return times.isEnough(givenNanos) ? FAILED : UNKNOWN;
        }

        /**
         * Returns the outcome of a call that had enough time, so that an exceeded deadline counts against the instance.
         *
         * @param error error with which the call ended; null for a result
         */
        public static Outcome of(@Nullable RPCXException error) {
            if (error == null) {
                return ANSWERED;
            }
            return switch (error.code()) {
                // a LocalFailure here has the reason UNHEARD: the event loop of this side was held up
                case DEADLINE_EXCEEDED -> error instanceof LocalFailure ? UNKNOWN : FAILED;
                case UNAVAILABLE, OVERLOADED, PROTOCOL -> {
                    if (error instanceof LocalFailure) {
                        // the instance closes or takes no more calls, or this side has no memory for what the instance
                        // sends
                        yield UNKNOWN;
                    }
                    // after the handler has run, such an error comes from a service that the handler has called
                    yield error.executed() == RPCXException.Executed.EXECUTED ? FAULT : FAILED;
                }
                case CANCELLED -> UNKNOWN;
                // MAYBE does not come from the server: this side could not send the call's stream
                case INVALID, TOO_LARGE -> error.executed() == RPCXException.Executed.MAYBE ? UNKNOWN : ANSWERED;
                case NOT_FOUND, UNAUTHENTICATED -> isRefusal(error) ? REFUSED : ANSWERED;
                case HANDLER_FAILED -> FAULT;
            };
        }
    }

    /**
     * Adds the route and the method to the text of an error that says that the server has no such method. Returns any
     * other error unchanged.
     */
    static RPCXException named(RPCXException error, Route at, Object method) {
        return error.code() == RPCXException.Code.NOT_FOUND && Outcome.isRefusal(error)
                ? new RPCXException(
                        error.code(), at + ": " + method + ": " + error.getMessage(), error.executed(), null)
                : error;
    }

    /** Number of calls, and number of failed calls, since the failure that opened the window. */
    private static final class Window {
        private final long endNanos;
        private final AtomicInteger calls = new AtomicInteger();
        private final AtomicInteger failed = new AtomicInteger();

        Window(long endNanos) {
            this.endNanos = endNanos;
        }

        /**
         * Counts a failed call.
         *
         * @return whether there were at least {@code MIN_CALLS} calls, and more than half of them have failed
         */
        boolean failed() {
            return failed.incrementAndGet() * 2L > calls.incrementAndGet() && calls.get() >= MIN_CALLS;
        }
    }

    /**
     * State of an instance that was ejected and has not answered since. The value is the time from which the next trial
     * may begin: the end of the ejection or of the latest trial.
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

        /**
         * Takes the trial for a call.
         *
         * @return false if the ejection is not over, or another call has the trial
         */
        boolean take(long now) {
            long last = get();
            return isOnTrial(now) && now - last >= 0 && compareAndSet(last, now + CHOSEN_NANOS);
        }

        /**
         * Gives back a trial whose call is not sent. If more than {@code CHOSEN_NANOS} remain, the trial is that of
         * another call, which has been sent, and is not given back.
         */
        void giveBack(long now) {
            long last = get();
            if (last - now > 0 && last - now <= CHOSEN_NANOS) {
                compareAndSet(last, now);
            }
        }
    }

    private final Ticker ticker;

    /** Number of consecutive failures. A call that succeeds writes it only if it is not 0. */
    private final AtomicInteger failures = new AtomicInteger();

    /**
     * Latest window; null if no call has failed lately. If two threads open a window at the same time, one call is not
     * counted.
     */
    private volatile @Nullable Window window;

    private volatile long lastFailureNanos;

    /**
     * Ejection of the instance; null for a healthy instance, as nearly all are. The choice of an instance normally
     * reads only this field.
     */
    private final AtomicReference<@Nullable Ejection> ejection = new AtomicReference<>();

    /** Time at which the latest ejection ends. Guarded by the cluster's lock. */
    private long outUntilNanos;

    /** Length of the latest ejection, as a multiple of {@link #OUT_NANOS}. Guarded by the cluster's lock. */
    private int times;

    public Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /**
     * Records the end of a call as {@link #ended(Outcome, long)} does. The call counts as sent now.
     *
     * @return whether the instance has failed often enough to be ejected
     */
    public boolean ended(Outcome outcome) {
        return ended(outcome, ticker.nanoTime());
    }

    /**
     * Records that a call has ended.
     *
     * @param begunNanos time at which the call was sent; a call that was sent before the ejection was over is no trial
     * @return whether the instance has failed often enough to be ejected
     */
    public boolean ended(Outcome outcome, long begunNanos) {
        if (outcome.isAnswer()) {
            answered();
            return false;
        }
        Ejection current = ejection.get();
        boolean isTrial = false;
        if (current != null && current.isOnTrial(begunNanos)) {
            current.set(ticker.nanoTime());
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
        Ejection current = ejection.get();
        if (current != null && current.isOnTrial(ticker.nanoTime())) {
            ejection.compareAndSet(current, null);
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
            // not counted: every window begins with a failure, so the share of failures would be too large
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
        ejection.set(new Ejection(outUntilNanos));
        failures.set(0);
        window = null;
    }

    /**
     * Orders instances by the end of their latest ejections: negative if that of this instance ends first. The caller
     * holds the cluster's lock.
     */
    int comesBackBefore(Health other) {
        return Long.signum(outUntilNanos - other.outUntilNanos);
    }

    /** Whether the instance is ejected, and its ejection is not over. */
    public boolean isEjected() {
        Ejection current = ejection.get();
        return current != null && !current.isOnTrial(ticker.nanoTime());
    }

    /** Whether the instance was ejected and has not answered a call since. */
    boolean isUnproven() {
        return ejection.get() != null;
    }

    /**
     * Whether the instance may be chosen: it is healthy, or it is on trial and no call has the trial. Runs for every
     * call.
     */
    public boolean isFree() {
        Ejection current = ejection.get();
        return current == null || current.isFree(ticker.nanoTime());
    }

    /**
     * Chooses the instance for a call that is about to be sent. If the instance is on trial, the call takes the trial.
     * Runs for every call.
     *
     * @return false if the instance is ejected, or another call has the trial
     */
    boolean choose() {
        Ejection current = ejection.get();
        return current == null || current.take(ticker.nanoTime());
    }

    /**
     * Called when the call for which this instance was chosen cannot be sent. If the call had the trial, the next call
     * may take it.
     */
    void unsent() {
        Ejection current = ejection.get();
        if (current != null) {
            current.giveBack(ticker.nanoTime());
        }
    }

    /**
     * Called when a call is about to be sent to the instance. If the call is a trial, the next trial may begin when the
     * call has ended or its deadline has passed, and at the latest after {@code MAX_TRIAL_NANOS}. Runs for every call.
     */
    public void begins(long deadlineNanos) {
        Ejection current = ejection.get();
        if (current == null) {
            return;
        }
        long now = ticker.nanoTime();
        if (current.isOnTrial(now)) {
            current.set(now + Math.min(MAX_TRIAL_NANOS, Math.max(0, deadlineNanos - now)));
        }
    }
}
