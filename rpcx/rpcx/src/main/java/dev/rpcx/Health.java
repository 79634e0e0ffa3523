package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Counts how the calls to one instance end. An instance that fails several times in a row, or more than half of its
 * calls, is left out for a while, longer each time. Source: the outlier detection of Envoy and of gRPC (proposal A50):
 * 5 in a row, left out for 30 s; a share of 85 % of at least 50 calls in 10 s. Both are shorter here, since a trial
 * costs one call, and a half is taken for too much, since an instance that fails at once has the least load and so
 * draws calls. Unlike there, a call that was given too little time for an answer is no failure: see
 * {@link AnswerTimes}.
 *
 * <p>When its time out is over an instance is on trial until a call is answered there: it is chosen for one call at a
 * time, and is left out again by the first of these that fails. Who finds no other instance takes it all the same.
 */
final class Health {
    private static final int FAILURES = 5;
    private static final long OUT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final int MAX_TIMES = 15;

    /** Calls of a window from which their share of failures is looked at. */
    private static final int MIN_CALLS = 20;

    /** A window begins with a failure, so calls that succeed count nothing while none fails. */
    private static final long WINDOW_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** Failures further apart than this are no row. */
    private static final long FORGOTTEN_NANOS = TimeUnit.SECONDS.toNanos(30);

    /**
     * Each such time in which the instance was not left out takes one from {@link #times}. Source: Envoy's interval of
     * 10 s.
     */
    private static final long FORGIVEN_NANOS = TimeUnit.SECONDS.toNanos(10);

    /** A caller who has chosen an instance on trial sends its call within this time, or not at all. */
    private static final long CHOSEN_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Another trial begins beside one that takes longer than this. */
    private static final long MAX_TRIAL_NANOS = OUT_NANOS * MAX_TIMES;

    /** A server ends a call when less than one part in so many of its time is left, but for what the way takes. */
    private static final int EARLY = 10;

    /** What the end of a call says of the instance that had it. */
    enum Outcome {
        ANSWERED,
        /**
         * It has answered, and its handler has failed, or passes on that another service has: what a caller asks for
         * may be the reason, so it counts against nobody, and is no result either.
         */
        FAULT,
        /**
         * It could not be reached, has refused the call before the handler began, or has not answered in enough time.
         */
        FAILED,
        /**
         * It is there, and has refused what may be its own fault: it is of another service or an older version, or
         * cannot check who calls. Counts as failed once another instance takes the call.
         */
        REFUSED,
        /** Says nothing: the caller gave up, or this side has not sent the request, or not heard how it ended. */
        UNTOLD;

        static boolean isRefusal(RPCXException error) {
            return (error.code() == RPCXException.Code.NOT_FOUND || error.code() == RPCXException.Code.UNAUTHENTICATED)
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED;
        }

        /** Whether the instance has taken the call, whatever its handler made of it. */
        boolean isAnswer() {
            return this == ANSWERED || this == FAULT;
        }

        /**
         * @param error null for a result
         * @param times of the method that was called
         * @param givenNanos what was left of the call's time when it was sent
         * @param leftNanos what is left of it now that the call has ended
         */
        static Outcome of(@Nullable RPCXException error, AnswerTimes times, long givenNanos, long leftNanos) {
            if (error == null || error.code() != RPCXException.Code.DEADLINE_EXCEEDED || error instanceof OwnEnd) {
                return of(error);
            }
            if (error.executed() == RPCXException.Executed.EXECUTED && leftNanos > givenNanos / EARLY) {
                // the handler's word of a call of its own: the time of this one is not over
                return FAULT;
            }
            return times.isEnough(givenNanos) ? FAILED : UNTOLD;
        }

        /** The same of a call that was given enough time, and has ended by the end of that where its time is over. */
        static Outcome of(@Nullable RPCXException error) {
            if (error == null) {
                return ANSWERED;
            }
            return switch (error.code()) {
                // unheard: this side's own event loop was held up
                case DEADLINE_EXCEEDED -> error instanceof OwnEnd ? UNTOLD : FAILED;
                case UNAVAILABLE, OVERLOADED, PROTOCOL -> {
                    if (error instanceof OwnEnd) {
                        // the instance closes in peace, takes no more calls, or this side has no memory for what it
                        // sends
                        yield UNTOLD;
                    }
                    // what a handler that has run says is of a service behind it
                    yield error.executed() == RPCXException.Executed.EXECUTED ? FAULT : FAILED;
                }
                case CANCELLED -> UNTOLD;
                // without the server's word: this side could not send what belongs to the call
                case INVALID, TOO_LARGE -> error.executed() == RPCXException.Executed.MAYBE ? UNTOLD : ANSWERED;
                case NOT_FOUND, UNAUTHENTICATED -> isRefusal(error) ? REFUSED : ANSWERED;
                case HANDLER_FAILED -> FAULT;
            };
        }
    }

    /** A server that has no such method says so without a name: that of the caller's is added, and whose word it is. */
    static RPCXException named(RPCXException error, Route at, Object method) {
        return error.code() == RPCXException.Code.NOT_FOUND && Outcome.isRefusal(error)
                ? new RPCXException(
                        error.code(), at + ": " + method + ": " + error.getMessage(), error.executed(), null)
                : error;
    }

    /** Calls since a failure. */
    private static final class Window {
        private final long endNanos;
        private final AtomicInteger calls = new AtomicInteger();
        private final AtomicInteger failed = new AtomicInteger();

        Window(long endNanos) {
            this.endNanos = endNanos;
        }

        /** @return whether more than half of enough calls have failed */
        boolean failed() {
            return failed.incrementAndGet() * 2L > calls.incrementAndGet() && calls.get() >= MIN_CALLS;
        }
    }

    /** An instance that was left out and has not answered since. Its value is when the latest trial is over. */
    private static final class Out extends AtomicLong {
        private final long untilNanos;

        Out(long untilNanos) {
            super(untilNanos);
            this.untilNanos = untilNanos;
        }

        boolean isOnTrial(long now) {
            return now - untilNanos >= 0;
        }

        boolean isFree(long now) {
            return isOnTrial(now) && now - get() >= 0;
        }

        /** @return false if another call has the trial */
        boolean take(long now) {
            long last = get();
            return isOnTrial(now) && now - last >= 0 && compareAndSet(last, now + CHOSEN_NANOS);
        }

        /** A trial that has begun is not the one that was taken here. */
        void giveBack(long now) {
            long last = get();
            if (last - now > 0 && last - now <= CHOSEN_NANOS) {
                compareAndSet(last, now);
            }
        }
    }

    private final Ticker ticker;

    /** Failures in a row. Calls that succeed only look at it. */
    private final AtomicInteger failures = new AtomicInteger();

    /** Null while no call has failed lately. Two threads that begin one at once lose a call of it, no more. */
    private volatile @Nullable Window window;

    private volatile long lastFailureNanos;

    /** Null for an instance in health, as nearly all are: calls look at it alone. */
    private final AtomicReference<@Nullable Out> out = new AtomicReference<>();

    /** Under the cluster's lock. */
    private long outUntilNanos;

    /** How many times {@link #OUT_NANOS} the instance is left out; under the cluster's lock. */
    private int times;

    Health(Ticker ticker) {
        this.ticker = ticker;
    }

    /** The same as {@link #ended(Outcome, long)}, of what is known now alone. */
    boolean ended(Outcome outcome) {
        return ended(outcome, ticker.nanoTime());
    }

    /**
     * A call has ended.
     *
     * @param begunNanos when it was sent: one that was sent before its instance was left out is no trial
     * @return whether the instance has failed often enough to be left out
     */
    boolean ended(Outcome outcome, long begunNanos) {
        if (outcome.isAnswer()) {
            answered();
            return false;
        }
        Out left = out.get();
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
        return isTooMuch && !isOut();
    }

    private void answered() {
        if (failures.get() != 0) {
            failures.set(0);
        }
        Out left = out.get();
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
            // the failure that opens a window does not count in it: there would be no window without it
            window = new Window(now + WINDOW_NANOS);
            return false;
        }
        return open.failed();
    }

    /** Under the cluster's lock. */
    void leaveOut() {
        long now = ticker.nanoTime();
        long forgiven = times == 0 ? 0 : Math.max(0, now - outUntilNanos) / FORGIVEN_NANOS;
        times = (int) Math.min(Math.max(0, times - forgiven) + 1, MAX_TIMES);
        outUntilNanos = now + OUT_NANOS * times;
        out.set(new Out(outUntilNanos));
        failures.set(0);
        window = null;
    }

    /** Compares by the time at which the instances come back. Under the cluster's lock. */
    int comesBackBefore(Health other) {
        return Long.signum(outUntilNanos - other.outUntilNanos);
    }

    /** Whether its time out is not over yet. */
    boolean isOut() {
        Out left = out.get();
        return left != null && !left.isOnTrial(ticker.nanoTime());
    }

    /** Whether nothing has been answered there since it was left out. */
    boolean isUnproven() {
        return out.get() != null;
    }

    /** Whether it would be chosen: it is in health, or on trial and no call has that. On the way of every call. */
    boolean isFree() {
        Out left = out.get();
        return left == null || left.isFree(ticker.nanoTime());
    }

    /**
     * The same for a call that is about to be sent there. On the way of every call.
     *
     * @return false if it is left out, or another call has the trial
     */
    boolean choose() {
        Out left = out.get();
        return left == null || left.take(ticker.nanoTime());
    }

    /** A call that has chosen it cannot be sent, which says nothing of it: the trial is the next call's. */
    void unsent() {
        Out left = out.get();
        if (left != null) {
            left.giveBack(ticker.nanoTime());
        }
    }

    /**
     * A call is about to be sent there, and ends by its deadline: if it is a trial there is no other one until then, or
     * until it has ended. On the way of every call.
     */
    void begins(long deadlineNanos) {
        Out left = out.get();
        if (left == null) {
            return;
        }
        long now = ticker.nanoTime();
        if (left.isOnTrial(now)) {
            left.set(now + Math.min(MAX_TRIAL_NANOS, Math.max(0, deadlineNanos - now)));
        }
    }
}
