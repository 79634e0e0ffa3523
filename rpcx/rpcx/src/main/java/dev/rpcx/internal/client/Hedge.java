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
 * A call that is made a second time if the first call has not ended after a while and the retry budget has a retry
 * left. The second call goes to another instance if there is one, and costs the budget one retry. The first result
 * counts, and the other call is cancelled; a failure counts only if the other call can no longer succeed. If the caller
 * completes or cancels the future, both calls are cancelled. Only methods that are safe to execute twice are hedged.
 *
 * <p>Source: Dean and Barroso, "The Tail at Scale", 2013.
 */
final class Hedge extends LoopThread.Untold {
    /**
     * The time in nanoseconds from the deadline to the first check of both calls, and from each check to the next. A
     * check finds a call that has ended without this hedge being told.
     */
    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ClientSteps steps;
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> result = new CallFuture<>();

    // This object's lock guards the fields from here to isUntold.
    private int inFlight;

    private @Nullable Leg first;
    private @Nullable Leg second;

    /** The call whose value or failure the caller gets; null until it is known which of the two calls this is. */
    private @Nullable Leg deciding;

    /**
     * Whether a server may have executed the other of the two calls, the one that is not {@link #deciding}. The field
     * is stored when the other call fails. It stays false if the other call ends only after {@code deciding} has been
     * set.
     */
    private boolean otherMayHaveRun;

    private @Nullable Future<?> timer;

    /** Whether this hedge has ever been passed to {@link LoopThread#tellLater} because its caller could not be told. */
    private boolean isUntold;

    /** One of the two calls of a hedge, with the result or the failure of that call. */
    static final class Leg {
        final FutureCall call;
        final boolean isAgain;

        /** The future of the call; null until the call has begun. */
        @Nullable
        CallFuture<@Nullable Object> answered;

        /** Whether this call has ended and is no longer counted in {@code inFlight}. */
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
     * Starts the first call, and sets a timer for the second call.
     *
     * @param beganNanos time in nanoseconds at which this thread began the caller's call
     * @param afterNanos time in nanoseconds from now to the second call
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
        // This callback runs when the future "result" has completed, for example because the caller has cancelled it. A
        // second call that begins later finds "result" completed.
        result.onEnd((value, failure) -> {
            stopLooking();
            giveUpAll();
        });
        return result;
    }

    private void look(Runnable task, long nanos) {
        synchronized (this) {
            // The lock makes sure that this timer is stored before the task, on an event loop, sets the next timer.
            // Otherwise this timer could replace the next one, which nobody could cancel then.
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
            // Without this, the timer would keep the arguments and the result in memory until it runs.
            last.cancel(false);
        }
    }

    /**
     * Makes the second call, unless the first call has ended or the retry budget has no retry left. A second call that
     * is sent costs the retry budget one retry. Called only on an event loop.
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
                // "result" has completed, or the first call has ended and is about to complete "result".
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
        // An exception of the callback above goes unnoticed, for example if a caller's stack is exhausted. The end of
        // the call is then not handled there. So if the call has ended, its end is handled here.
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
     * Returns true when this method runs for the first time, and false afterwards. Called when one of the two calls has
     * ended, but its event loop could not tell the caller. Each event loop keeps a list of calls whose callers it has
     * to tell later. The two calls can have different event loops, but the hedge can be in only one list, since it has
     * one field for the next entry of a list. If the result is false, the hedge is not added to a list, and a timer
     * tells the caller.
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

    /**
     * Records that one of the two calls has ended. A failure decides the result only if the other call can no longer
     * succeed.
     */
    private void ended(Leg leg, @Nullable Object value, @Nullable Throwable failure) {
        boolean isUnsent = leg.isAgain && leg.call.address() == null;
        // This value is computed before the stores below, so that nothing can fail between them.
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
                    // No server has received anything of the second call, so the retry budget gets the cost back.
                    Attempts.giveBackHedge(steps);
                }
            }
        }
        tell();
    }

    /** Completes the caller's future if the result is decided. If this method has failed, it is called again. */
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
        // The caller can have completed or cancelled "result" already. In that case, succeed() and fail() do not change
        // the outcome, but still release the references of "result" to the call.
        if (decided.failure == null) {
            result.succeed(decided.value);
        } else {
            result.fail(steps.told(Attempts.callerError(decided.failure, other)));
        }
    }

    /** Cancels both calls. A call that has ended stays as it is. */
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
