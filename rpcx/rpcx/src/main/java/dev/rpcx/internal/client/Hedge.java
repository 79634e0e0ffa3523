package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.io.LoopThread;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A call that is made a second time, to another instance if there is one, if the first call has not been answered after
 * a while. The first answer counts, and the other call is cancelled. If the caller ends the result, both calls are
 * cancelled. Only for methods that may be executed twice. Second calls are paid from the retry budget. Source: Dean and
 * Barroso, "The Tail at Scale", 2013.
 */
final class Hedge extends LoopThread.Untold {
    /**
     * Interval of the checks whether a call of the hedge has ended without the hedge being notified. The first check
     * comes this time after the deadline.
     */
    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ClientSteps steps;
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> result = new CallFuture<>();

    // the fields from here to isUntold are guarded by this
    private int inFlight;

    private @Nullable Leg first;
    private @Nullable Leg second;

    /** The one of the two calls that decides how the result ends; null until then. */
    private @Nullable Leg deciding;

    /** Whether the other call of the hedge failed before {@link #deciding} ended, and may have been executed. */
    private boolean otherMayHaveRun;

    private @Nullable Future<?> timer;

    /** Whether this hedge is, or was, in an event loop's list of calls whose callers could not be told. */
    private boolean isUntold;

    /** One of the two calls of a hedge. */
    static final class Leg {
        final FutureCall call;
        final boolean isAgain;

        /** Future that ends with the call; null until the call has begun. */
        @Nullable
        CallFuture<@Nullable Object> answered;

        /** Whether the end of the call has been counted in {@code inFlight}. */
        boolean isOver;

        @Nullable
        Object value;

        @Nullable
        Throwable failure;

        Leg(FutureCall call, boolean isAgain) {
            this.call = call;
            this.isAgain = isAgain;
        }
    }

    Hedge(ClientSteps steps, Object[] arguments, Metadata metadata, long deadlineNanos) {
        this.steps = steps;
        this.arguments = arguments;
        this.metadata = metadata;
        this.deadlineNanos = deadlineNanos;
    }

    /**
     * Starts the first call, and schedules the second one.
     *
     * @param beganNanos time at which the caller made the call, on this thread
     * @param afterNanos time from now to the second call
     */
    CallFuture<@Nullable Object> start(long beganNanos, long afterNanos) {
        Leg one = new Leg(new FutureCall(steps, arguments, metadata, deadlineNanos, null, result), false);
        synchronized (this) {
            first = one;
        }
        begin(one, beganNanos);
        if (!result.isDone()) {
            look(this::again, afterNanos);
        }
        // Runs when anyone has ended the result, for example the caller. A second call that begins later sees that end.
        result.onEnd((value, failure) -> {
            stopLooking();
            giveUpAll();
        });
        return result;
    }

    private void look(Runnable task, long nanos) {
        synchronized (this) {
            // Set under the lock: otherwise the task could run and set the next timer before this one is stored.
            timer = steps.route.timer(task, nanos);
        }
        if (result.isDone()) {
            stopLooking();
        }
    }

    private void stopLooking() {
        Future<?> last;
        synchronized (this) {
            last = timer;
            timer = null;
        }
        if (last != null) {
            // otherwise the timer would keep the arguments and the result in memory until its time
            last.cancel(false);
        }
    }

    /**
     * Makes the second call, unless the first has ended. If the second call is sent, it takes a retry from the budget.
     * Event loop only.
     */
    private void again() {
        Leg one;
        synchronized (this) {
            one = Objects.requireNonNull(first);
        }
        endUntold();
        if (result.isDone()) {
            return;
        }
        Leg other = new Leg(
                new FutureCall(steps, arguments, metadata, deadlineNanos, Attempts.beside(one.call.address()), result),
                true);
        synchronized (this) {
            second = other;
        }
        begin(other, steps.route.ticker().nanoTime());
        lookAtTheDeadline();
    }

    private void lookAtTheDeadline() {
        if (!result.isDone()) {
            long left = deadlineNanos - steps.route.ticker().nanoTime();
            look(this::lastLook, Math.max(0, left) + LOOK_NANOS);
        }
    }

    private void lastLook() {
        endUntold();
        lookAtTheDeadline();
    }

    private void begin(Leg leg, long now) {
        synchronized (this) {
            if (leg.isAgain && (inFlight == 0 || result.isDone())) {
                // the result has ended, or the first call has ended and is about to end the result
                return;
            }
            if (leg.isAgain && !Attempts.mayHedge(steps)) {
                return;
            }
            inFlight++;
        }
        try {
            CallFuture<@Nullable Object> answered = leg.isAgain ? leg.call.startAgain(now) : leg.call.start(now);
            synchronized (this) {
                leg.answered = answered;
            }
            answered.onEnd((value, failure) -> heard(leg, value, failure));
        } catch (Throwable e) {
            ended(leg, null, e);
        }
        // If the action above has thrown, for example because a caller's stack is exhausted, nobody sees the exception.
        // So if the call has ended, its end is handled here.
        tellWhatHasEnded(leg);
    }

    private void heard(Leg leg, @Nullable Object value, @Nullable Throwable failure) {
        try {
            ended(leg, value, failure);
        } catch (Throwable e) {
            if (Thread.currentThread() instanceof LoopThread loop && isFirstToWait()) {
                loop.tellLater(this);
            }
            throw e;
        }
    }

    /**
     * Whether this hedge may be put into an event loop's list of calls whose callers could not be told. It may be put
     * into one list, once, since it has only one link to a next entry. Otherwise a timer finds it.
     */
    private synchronized boolean isFirstToWait() {
        boolean isFirst = !isUntold;
        isUntold = true;
        return isFirst;
    }

    @Override
    public boolean endUntold() {
        try {
            Leg one;
            Leg other;
            synchronized (this) {
                one = first;
                other = second;
            }
            tellWhatHasEnded(one);
            tellWhatHasEnded(other);
            return true;
        } catch (Throwable stillNoMemory) {
            return false;
        }
    }

    private void tellWhatHasEnded(@Nullable Leg leg) {
        CallFuture<@Nullable Object> answered;
        boolean isOver;
        synchronized (this) {
            answered = leg == null ? null : leg.answered;
            isOver = leg == null || leg.isOver;
        }
        if (!isOver && answered != null && answered.isDone()) {
            Object value = null;
            Throwable failure = null;
            try {
                value = answered.join();
            } catch (CompletionException e) {
                failure = e.getCause() == null ? e : e.getCause();
            } catch (CancellationException e) {
                failure = e;
            }
            ended(Objects.requireNonNull(leg), value, failure);
        } else if (isOver) {
            tell();
        }
    }

    /** Counts the end of a call. A failure decides the result only if the other call can no longer succeed. */
    private void ended(Leg leg, @Nullable Object value, @Nullable Throwable failure) {
        boolean isUnsent = leg.isAgain && leg.call.address() == null;
        // The value is computed here, so that nothing can fail between the stores below.
        boolean mayHaveRun = failure != null && Attempts.mayHaveRun(failure);
        synchronized (this) {
            if (!leg.isOver) {
                leg.isOver = true;
                leg.value = value;
                leg.failure = failure;
                inFlight--;
                if (deciding == null) {
                    if (failure == null || inFlight == 0) {
                        deciding = leg;
                    } else {
                        otherMayHaveRun = mayHaveRun;
                    }
                }
                if (isUnsent) {
                    // no server has received anything of the second call
                    Attempts.giveBackHedge(steps);
                }
            }
        }
        tell();
    }

    /** Tells the caller how the call has ended, if that is decided. Called again if this method has failed. */
    private void tell() {
        Leg decided;
        boolean other;
        synchronized (this) {
            decided = deciding;
            other = otherMayHaveRun;
        }
        if (decided == null) {
            return;
        }
        // Runs even if the caller has ended the result: succeed() and fail() release what the call held.
        if (decided.failure == null) {
            result.succeed(decided.value);
        } else {
            result.fail(Attempts.callerError(decided.failure, other));
        }
    }

    /** Gives up both calls. A call that has ended stays as it is. */
    private void giveUpAll() {
        Leg one;
        Leg other;
        synchronized (this) {
            one = first;
            other = second;
        }
        if (one != null) {
            one.call.giveUp();
        }
        if (other != null) {
            other.call.giveUp();
        }
    }
}
