package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether one instance of a service is healthy, from the ends of the calls to the instance. A healthy instance
 * has to be ejected in two cases:
 *
 * <ul>
 *   <li>Five calls in a row fail.
 *   <li>At least 20 calls end within 10 s after a first failure, and more than half of these calls fail.
 * </ul>
 *
 * <p>The {@link ClientCluster} then gives the instance no calls for 2 s, or for up to 30 s if the instance was ejected
 * lately. An instance is not ejected if more than half of all instances would then be ejected. An exceeded deadline
 * does not count as a failure if the call had too little time for an answer: see {@link AnswerTimes}.
 *
 * <p>After its ejection an instance is on trial, that is, it gets only one call at a time. If the instance then answers
 * any call, the instance is healthy again. If a call that was sent during the trial fails, the instance is ejected
 * again. If no other instance is available, calls use an ejected instance too.
 *
 * <p>Source: the outlier detection of Envoy and of gRPC (proposal A50). They eject for 30 s. Here 2 s are enough, since
 * a trial costs only one call. They eject at 85 % of failures. This class ejects at more than half, since an instance
 * that fails immediately has the least load and so attracts calls.
 */
public final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /**
     * Minimum number of calls within 10 s for which the fraction of failed calls is judged. With fewer calls, an
     * instance is not ejected for its fraction of failures.
     */
    private static final int MIN_CALLS = 20;

    /**
     * Length of the period in which failed calls and all calls are counted, to compute the fraction of failures. A
     * period begins when a call fails outside of a period. So nothing is counted if no call has failed lately.
     */
    private static final long WINDOW_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Maximum time between two failures that count as consecutive. */
    private static final long MAX_FAILURE_GAP_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Time without an ejection that makes the next ejection shorter by one {@link #OUT_NANOS}, that is, by 2 s. The
     * time counts from the end of the latest ejection. For example, after three ejections in a row, the next one would
     * last 8 s. If 20 s pass before it, it is shorter by two times 2 s and lasts 4 s. Source: Envoy's interval of 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /**
     * Maximum time for which a call that has not been sent yet reserves an instance on trial. After an ejection, an
     * instance is on trial: it gets only one call at a time. If the call has not been sent by the end of this time,
     * another call can choose the instance.
     */
    private static final long MAX_RESERVED_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum time for which a call that has been sent reserves an instance on trial. After this time, the instance can
     * get another call, even if the first has not ended.
     */
    private static final long MAX_TRIAL_NANOS = OUT_NANOS * MAX_TIMES;

    /**
     * A DEADLINE_EXCEEDED error from a handler is early if more than a tenth of the call's time remains when the error
     * comes. For example, if a call has 1 s, an error is early while more than 100 ms remain. An early error is taken
     * for the error of another call, which the handler has made. The deadline of that other call was exceeded, and the
     * handler has passed on the error.
     */
    private static final int EARLY = 10;

    /** What the end of a call says about the health of the instance that was called. */
    public enum Outcome {
        ANSWERED,
        /**
         * The instance works, but the handler has failed, or has passed on the failure of another service. This does
         * not count as a failure of the instance, since the caller's request may be the cause.
         */
        FAULT,
        /**
         * The instance has failed in one of these ways:
         *
         * <ul>
         *   <li>The instance could not be reached, the connection was lost, or the instance broke the protocol.
         *   <li>The instance refused the call as overloaded or unavailable before the handler began.
         *   <li>The instance did not answer, although the call had enough time for an answer.
         * </ul>
         */
        FAILED,
        /**
         * The instance has refused the call because it does not have the method or cannot authenticate the caller. The
         * reason may be the instance itself, for example its older version. This counts as a failure of the instance
         * only if another instance then answers the call.
         */
        REFUSED,
        /**
         * The end says nothing about the instance. For example, the caller gave up, or this side did not send the
         * request.
         */
        UNKNOWN;

        static boolean isRefusal(RPCXException error) {
            return (error.code() == RPCXException.Code.NOT_FOUND || error.code() == RPCXException.Code.UNAUTHENTICATED)
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED;
        }

        /** Returns whether the instance has answered the call. An instance whose handler has failed has answered. */
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
                // The handler has made another call, and passes on the exceeded deadline of that call.
                return FAULT;
            }
            return times.isEnough(givenNanos) ? FAILED : UNKNOWN;
        }

        /**
         * Returns what the end of a call says about its instance, for a call that had enough time for an answer. An
         * exceeded deadline therefore counts as a failure of the instance.
         *
         * @param error error with which the call ended; null if it returned a result
         */
        public static Outcome of(@Nullable RPCXException error) {
            if (error == null) {
                return ANSWERED;
            }
            return switch (error.code()) {
                // A LocalFailure with this code has the reason UNHEARD: the event loop of this side was held up until
                // the call's time was over, so this side does not know how the server has ended the call.
                case DEADLINE_EXCEEDED -> error instanceof LocalFailure ? UNKNOWN : FAILED;
                case UNAVAILABLE, OVERLOADED, PROTOCOL -> {
                    if (error instanceof LocalFailure) {
                        // The error comes from this client and not from the instance. For example, the connection took
                        // no more calls, or this client had no memory for what the instance sent.
                        yield UNKNOWN;
                    }
                    // An error that comes after the handler has run is usually the error of another service, which the
                    // handler has called.
                    yield error.executed() == RPCXException.Executed.EXECUTED ? FAULT : FAILED;
                }
                case CANCELLED -> UNKNOWN;
                // An error with MAYBE usually comes from this side, which could not send the stream of the call.
                case INVALID, TOO_LARGE -> error.executed() == RPCXException.Executed.MAYBE ? UNKNOWN : ANSWERED;
                case NOT_FOUND, UNAUTHENTICATED -> isRefusal(error) ? REFUSED : ANSWERED;
                case HANDLER_FAILED -> FAULT;
            };
        }
    }

    /**
     * Adds the route and the method to the text of an error which says that the server does not have the method. Any
     * other error is returned unchanged.
     */
    static RPCXException named(RPCXException error, Route at, Object method) {
        return error.code() == RPCXException.Code.NOT_FOUND && Outcome.isRefusal(error)
                ? ClientCallErrors.methodNotFound(error, at, method)
                : error;
    }

    /**
     * Counts the calls and the failed calls of one period of 10 s. The fraction of failures is computed from these two
     * numbers. Any thread raises the numbers when a call ends or is refused on this thread.
     */
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
         * @return whether the fraction of failures is too large, that is, whether at least {@code MIN_CALLS} calls
         *     have been counted and more than half of them have failed
         */
        boolean failed() {
            return failed.incrementAndGet() * 2L > calls.incrementAndGet() && calls.get() >= MIN_CALLS;
        }
    }

    /**
     * State of an instance from its ejection until it answers a call while on trial. The ejection ends at
     * {@code untilNanos}. From then on, the instance is on trial: it gets one call at a time. The value of the
     * {@code AtomicLong} is the earliest time at which the instance can get its next call. Any thread changes the
     * value. If several threads try to reserve the instance for a call at the same time, a compare-and-set lets only
     * one of them succeed.
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
         * Reserves the instance for a call that is about to be sent, so that the instance gets no other call at the
         * same time.
         *
         * @return false if the ejection has not ended, or if the instance is reserved for another call
         */
        boolean take(long now) {
            long last = get();
            return isOnTrial(now) && now - last >= 0 && compareAndSet(last, now + MAX_RESERVED_NANOS);
        }

        /**
         * Ends the reservation that {@link #take} has made for a call which is not sent. Does nothing if the instance
         * is reserved for more than {@code MAX_RESERVED_NANOS} from now. {@code take} never reserves the instance for
         * that long, so this reservation belongs to another call, which has been sent.
         */
        void giveBack(long now) {
            long last = get();
            if (last - now > 0 && last - now <= MAX_RESERVED_NANOS) {
                compareAndSet(last, now);
            }
        }
    }

    private final Ticker ticker;

    /**
     * Number of consecutive failures of the instance. Any thread on which a call ends or is refused changes this
     * number. If a call is answered, the thread writes 0 only if the number is not 0 already, since needless writes
     * would make calls to a healthy instance slower.
     */
    private final AtomicInteger failures = new AtomicInteger();

    /**
     * Counts of calls and failures in the latest period of 10 s; null if no call has failed lately, or after an
     * ejection. The failure that begins a period is not counted. If two threads begin a period at the same time, the
     * failures of both are not counted.
     */
    private volatile @Nullable Window window;

    /** Time of the latest failure. Any thread on which a call fails or is refused stores and reads it. */
    private volatile long lastFailureNanos;

    /**
     * State of the instance since its latest ejection; null if the instance is healthy. Each choice of an instance
     * reads this field, and normally nothing else of this class. A thread stores an ejection under the lock of the
     * {@link ClientCluster}. Any thread on which a call is answered clears this field, by a compare-and-set, so that
     * the thread does not clear a later ejection.
     */
    private final AtomicReference<@Nullable Ejection> ejection = new AtomicReference<>();

    /** Time at which the latest ejection ends or has ended. Guarded by the lock of the {@link ClientCluster}. */
    private long outUntilNanos;

    /**
     * Length of the latest ejection as a multiple of {@link #OUT_NANOS}, from 1 to 15; 0 if there was no ejection.
     * Guarded by the lock of the {@link ClientCluster}.
     */
    private int times;

    public Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /**
     * Records that a call has ended, and assumes that the call was sent just now.
     *
     * @return whether the instance has failed so often that it has to be ejected
     */
    public boolean ended(Outcome outcome) {
        return ended(outcome, ticker.nanoTime());
    }

    /**
     * Records that a call to this instance has ended.
     *
     * @param begunNanos time at which the call was sent. If the instance was on trial at this time and still is, the
     *     failure of the call alone is enough to eject the instance again. The failure of a call that was sent before
     *     the end of the ejection is not enough alone.
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
        if (now - lastFailureNanos > MAX_FAILURE_GAP_NANOS) {
            failures.set(0);
        }
        lastFailureNanos = now;
        boolean isTooMuch = failures.incrementAndGet() >= FAILURES | isFailureFractionTooLarge(now) | isTrial;
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

    private boolean isFailureFractionTooLarge(long now) {
        Window open = window;
        if (open == null || now - open.endNanos >= 0) {
            // The failure that begins a period is not counted. Each period begins with a failure, so counting it would
            // make the fraction of failures too large.
            window = new Window(now + WINDOW_NANOS);
            return false;
        }
        return open.failed();
    }

    /**
     * Ejects the instance, so that it gets no calls for a while. The first ejection lasts 2 s, and each further one 2 s
     * longer, up to 30 s. Time without an ejection shortens the next ejection: see {@link #FORGIVEN_NANOS}. The caller
     * holds the lock of the {@link ClientCluster}.
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
     * Compares the times at which the latest ejections of two instances end. Returns a negative number if this
     * instance's ejection ends first. The caller holds the lock of the {@link ClientCluster}.
     */
    int comesBackBefore(Health other) {
        return Long.signum(outUntilNanos - other.outUntilNanos);
    }

    /**
     * Returns whether the instance is ejected at present. After the end of the ejection, when the instance is on trial,
     * this method returns false.
     */
    public boolean isEjected() {
        Ejection current = ejection.get();
        return current != null && !current.isOnTrial(ticker.nanoTime());
    }

    /**
     * Returns whether the instance is ejected or on trial. An instance is on trial from the end of its ejection until
     * it answers a call.
     */
    boolean isUnproven() {
        return ejection.get() != null;
    }

    /**
     * Returns whether a call can choose this instance now. A healthy instance can always be chosen. An ejected instance
     * cannot be chosen, and an instance on trial can be chosen for one call at a time. With {@code LEAST_LOADED}, this
     * method runs for every call.
     */
    public boolean isFree() {
        Ejection current = ejection.get();
        return current == null || current.isFree(ticker.nanoTime());
    }

    /**
     * Chooses the instance for a call that is about to be sent. If the instance is on trial after an ejection, this
     * reserves the instance: other calls cannot choose it at the same time. This method runs for every call of a
     * {@link ClientCluster}.
     *
     * @return false if the instance is ejected, or if it is on trial and has a call already
     */
    boolean choose() {
        Ejection current = ejection.get();
        return current == null || current.take(ticker.nanoTime());
    }

    /**
     * Called when a call has chosen this instance, but cannot be sent. An instance that is on trial after an ejection
     * gets only one call at a time, so this method lets another call choose the instance.
     */
    void unsent() {
        Ejection current = ejection.get();
        if (current != null) {
            current.giveBack(ticker.nanoTime());
        }
    }

    /**
     * Called when a call is about to be sent to this instance. If the instance is on trial after an ejection, the
     * instance gets no other call until this call ends or reaches its deadline, or until {@code MAX_TRIAL_NANOS} have
     * passed. This method runs for every call.
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
