package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Decides from the ends of its calls whether one instance of a service is healthy. An instance that fails five times in
 * a row, or that fails more than half of at least 20 calls within 10 s, is ejected by its {@link ClientCluster}: it
 * gets no calls for 2 s, and for longer each further time, up to 30 s. A call that had too little time for an answer
 * does not count as a failure: see {@link AnswerTimes}.
 *
 * <p>After its ejection an instance is on trial: it gets one call at a time. If it answers one, it is healthy again; if
 * a call fails, it is ejected again. If no other instance is available, calls use an ejected instance too.
 *
 * <p>Source: the outlier detection of Envoy and of gRPC (proposal A50). They eject for 30 s; 2 s are enough here, since
 * a trial costs only one call. They eject at 85 % of failures; here it is half, since an instance that fails
 * immediately has the least load and so attracts calls.
 */
public final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /**
     * Minimum number of calls in a window of time. With fewer calls, an instance is not ejected for its share of
     * failures.
     */
    private static final int MIN_CALLS = 20;

    /**
     * Length of the window of time in which the share of failed calls is computed. A window begins with a failed call.
     * So while no call fails, no calls are counted, which costs nothing.
     */
    private static final long WINDOW_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Maximum time between two failures that count as consecutive. */
    private static final long FORGOTTEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Time without ejection after which the next ejection is one step shorter. That is, each such period reduces
     * {@link #times} by 1. Source: Envoy's interval of 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Time for which a call reserves the trial of an instance before it is sent. If the call has not been sent by then,
     * another call may be the trial.
     */
    private static final long CHOSEN_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum time for which a call that was sent as the trial of an instance is the only one. After that, a second
     * trial may begin.
     */
    private static final long MAX_TRIAL_NANOS = OUT_NANOS * MAX_TIMES;

    /**
     * Divisor that finds a DEADLINE_EXCEEDED error which the handler has only passed on. It is such an error if more
     * than the call's whole time divided by this number remains when it comes. The deadline that was exceeded is then
     * that of a call which the handler has made.
     */
    private static final int EARLY = 10;

    /** What the end of a call says about the health of the instance that was called. */
    public enum Outcome {
        ANSWERED,
        /**
         * The handler has run, and has failed or passed on the failure of another service. The instance itself works.
         * This does not count as a failure of the instance, since what the caller asks for may be the reason.
         */
        FAULT,
        /**
         * The instance has failed. It could not be reached, refused the call before its handler began, or did not
         * answer although there was enough time.
         */
        FAILED,
        /**
         * The instance has refused the call because it does not have the method or cannot authenticate the caller. This
         * may be the fault of the instance: it may have an older version, or belong to another service. It counts as a
         * failure only if another instance then takes the call.
         */
        REFUSED,
        /**
         * The end says nothing about the instance. For example, the caller gave up, this side did not send the request,
         * or this side does not know how the call ended.
         */
        UNKNOWN;

        static boolean isRefusal(RPCXException error) {
            return (error.code() == RPCXException.Code.NOT_FOUND || error.code() == RPCXException.Code.UNAUTHENTICATED)
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED;
        }

        /** Whether the instance has answered the call. That is so even if the handler has failed. */
        boolean isAnswer() {
            return this == ANSWERED || this == FAULT;
        }

        /**
         * Returns what the end of a call says about its instance.
         *
         * @param error error with which the call ended; null if it returned a result
         * @param times answer times of the called method
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
         * Returns what the end of a call says about its instance, if the call had enough time for an answer. So an
         * exceeded deadline counts as a failure.
         *
         * @param error error with which the call ended; null if it returned a result
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
     * Adds the route and the method to the text of an error which says that the server does not have the method.
     * Returns every other error as it is.
     */
    static RPCXException named(RPCXException error, Route at, Object method) {
        return error.code() == RPCXException.Code.NOT_FOUND && Outcome.isRefusal(error)
                ? new RPCXException(
                        error.code(), at + ": " + method + ": " + error.getMessage(), error.executed(), null)
                : error;
    }

    /** A window of time in which calls and failed calls are counted, to compute the share of failures. */
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
         * @return whether the share of failures is too large: more than half of at least {@code MIN_CALLS} calls
         */
        boolean failed() {
            return failed.incrementAndGet() * 2L > calls.incrementAndGet() && calls.get() >= MIN_CALLS;
        }
    }

    /**
     * State of an instance that was ejected and has not answered a call since. {@code untilNanos} is the time at which
     * the ejection ends and trials begin. The value of this {@code AtomicLong} is the earliest time at which a call may
     * be the next trial: the end of the ejection, or the time until which another call is the trial.
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
         * Makes the call that is about to be sent the trial of the instance.
         *
         * @return false if the ejection has not ended, or if another call is the trial
         */
        boolean take(long now) {
            long last = get();
            return isOnTrial(now) && now - last >= 0 && compareAndSet(last, now + CHOSEN_NANOS);
        }

        /**
         * Ends the trial of a call that was chosen as the trial but is not sent. Does nothing if more than
         * {@code CHOSEN_NANOS} of the trial remain: then the trial belongs to another call, which has been sent.
         */
        void giveBack(long now) {
            long last = get();
            if (last - now > 0 && last - now <= CHOSEN_NANOS) {
                compareAndSet(last, now);
            }
        }
    }

    private final Ticker ticker;

    /**
     * Number of consecutive failures of the instance. A call that succeeds writes this only if it is not 0, so that
     * healthy instances cost no writes.
     */
    private final AtomicInteger failures = new AtomicInteger();

    /**
     * The current window of time for the share of failures; null if no call has failed lately. If two threads open a
     * window at the same time, one of the failures is not counted.
     */
    private volatile @Nullable Window window;

    private volatile long lastFailureNanos;

    /**
     * State of the instance since its latest ejection; null while the instance is healthy. Each choice of an instance
     * reads this field, and normally nothing else of this class.
     */
    private final AtomicReference<@Nullable Ejection> ejection = new AtomicReference<>();

    /** Time at which the latest ejection ends or has ended. Guarded by the lock of the {@link ClientCluster}. */
    private long outUntilNanos;

    /**
     * Length of the latest ejection, in units of {@link #OUT_NANOS}; 0 if there was none. Guarded by the lock of the
     * {@link ClientCluster}.
     */
    private int times;

    public Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /**
     * Records that a call has ended, as if it had been sent just now.
     *
     * @return whether the instance has failed so often that it has to be ejected
     */
    public boolean ended(Outcome outcome) {
        return ended(outcome, ticker.nanoTime());
    }

    /**
     * Records that a call to this instance has ended.
     *
     * @param begunNanos time at which the call was sent. A call that was sent before the end of the ejection is not a
     *     trial.
     * @return whether the instance has failed so often that it has to be ejected
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

    /**
     * Ejects the instance for a while. An instance that was ejected lately is ejected for longer. The caller holds the
     * lock of the {@link ClientCluster}.
     */
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
     * Compares the ends of the latest ejections of two instances: negative if the ejection of this one ends first. The
     * caller holds the lock of the {@link ClientCluster}.
     */
    int comesBackBefore(Health other) {
        return Long.signum(outUntilNanos - other.outUntilNanos);
    }

    /** Whether the instance is ejected at present. False for an instance on trial. */
    public boolean isEjected() {
        Ejection current = ejection.get();
        return current != null && !current.isOnTrial(ticker.nanoTime());
    }

    /** Whether the instance was ejected and has not answered a call since. It may be ejected still, or on trial. */
    boolean isUnproven() {
        return ejection.get() != null;
    }

    /**
     * Whether a call may choose this instance. That is so if the instance is healthy, or if it is on trial and no other
     * call is the trial at present. Runs for every call.
     */
    public boolean isFree() {
        Ejection current = ejection.get();
        return current == null || current.isFree(ticker.nanoTime());
    }

    /**
     * Chooses the instance for a call that is about to be sent. If the instance is on trial, this call becomes the
     * trial, and other calls cannot choose the instance meanwhile. Runs for every call.
     *
     * @return false if the instance is ejected, or if another call is the trial
     */
    boolean choose() {
        Ejection current = ejection.get();
        return current == null || current.take(ticker.nanoTime());
    }

    /**
     * Called when a call has chosen this instance and then cannot be sent. If the call was the trial of the instance,
     * another call may be the trial now.
     */
    void unsent() {
        Ejection current = ejection.get();
        if (current != null) {
            current.giveBack(ticker.nanoTime());
        }
    }

    /**
     * Called when a call is about to be sent to this instance. If the instance is on trial, the call is the trial until
     * it ends, or until its deadline, but for {@code MAX_TRIAL_NANOS} at most. Runs for every call.
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
