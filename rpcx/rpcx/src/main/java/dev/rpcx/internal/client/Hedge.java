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
 * A call that is made a second time, at another instance if there is one, when the first call has not been answered
 * after a while. The one that is answered first counts, and the other is cancelled; both are cancelled if the caller
 * ends the result itself. Only for methods that may be executed twice. Second calls are paid for out of the retry
 * budget. Source: Dean and Barroso, "The Tail at Scale", 2013.
 */
final class Hedge extends LoopThread.Untold {
    /**
     * Time after the deadline at which this hedge looks for ends of its calls that it has not heard of, and between
     * later looks. The calls keep the deadline themselves.
     */
    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ClientSteps steps;
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> result = new CallFuture<>();

    // guarded by this
    private int underWay;

    private @Nullable Leg first;
    private @Nullable Leg second;

    /** The leg that says how the result ends; null until there is one. */
    private @Nullable Leg deciding;

    /** The other leg has failed before {@link #deciding} and may have been executed. */
    private boolean otherMayHaveRun;

    private @Nullable Future<?> timer;

    /** This hedge is in the list of an event loop, or has been. */
    private boolean isUntold;

    /** One of the two calls. */
    static final class Leg {
        final FutureCall call;
        final boolean isAgain;

        /** Future that ends with the call; null until the call has begun. */
        @Nullable
        CallFuture<@Nullable Object> answered;

        /** The end of the call has been counted in {@code underWay}. */
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

    /** @param beganNanos time at which the caller made the call, on this thread */
    CallFuture<@Nullable Object> start(long beganNanos, long afterNanos) {
        Leg one = new Leg(new FutureCall(steps, arguments, metadata, deadlineNanos, null, result), false);
        synchronized (this) {
            first = one;
        }
        begin(one, beganNanos);
        if (!result.isDone()) {
            look(this::again, afterNanos);
        }
        // This runs whoever ends the result, such as its caller. A second call that begins after that finds the result
        // ended.
        result.onEnd((value, failure) -> {
            stopLooking();
            giveUpAll();
        });
        return result;
    }

    private void look(Runnable task, long nanos) {
        synchronized (this) {
            // Asked for under the lock: otherwise a timer whose task has run before the timer is stored would replace
            // the timer that the task has asked for.
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
            // until it ran out, the timer would keep the arguments and the result
            last.cancel(false);
        }
    }

    /** Makes the second call, unless the first has ended. It costs a retry if it is sent. On an event loop. */
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
            if (leg.isAgain && (underWay == 0 || result.isDone())) {
                // the result has ended, or the first call has, and is about to end the result
                return;
            }
            if (leg.isAgain && !Attempts.mayHedge(steps)) {
                return;
            }
            underWay++;
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
        // What the action above throws, such as that a caller's stack is exhausted, goes to a stage that nobody looks
        // at. So an end that has come is looked for here.
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
     * Whether this hedge may be put into a list of an event loop: it has the link for one list, once. A hedge that is
     * in none is found by a timer.
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
        // asked here, so that nothing can fail between the stores that follow
        boolean mayHaveRun = failure != null && Attempts.mayHaveRun(failure);
        synchronized (this) {
            if (!leg.isOver) {
                leg.isOver = true;
                leg.value = value;
                leg.failure = failure;
                underWay--;
                if (deciding == null) {
                    if (failure == null || underWay == 0) {
                        deciding = leg;
                    } else {
                        otherMayHaveRun = mayHaveRun;
                    }
                }
                if (isUnsent) {
                    // no server has had anything of the second call
                    Attempts.giveBackHedge(steps);
                }
            }
        }
        tell();
    }

    /** Tells the caller how the call has ended, once that is known. Called again if it has failed. */
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
        // Also if the caller has ended the result already: succeed() and fail() release what the call held.
        if (decided.failure == null) {
            result.succeed(decided.value);
        } else {
            result.fail(Attempts.told(decided.failure, other));
        }
    }

    /** Gives both calls up; one that has ended stays as it is. */
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
