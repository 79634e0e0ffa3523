package dev.rpcx;

import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A call that is made a second time, elsewhere, when the first has not been answered after a while; whichever is
 * answered first counts, the other is cancelled. Both are where the caller ends the result itself. For methods that may
 * be executed twice. Second calls come out of the budget of retries. Source: Dean and Barroso, "The Tail at Scale",
 * 2013.
 */
final class Hedge extends LoopThread.Untold {
    /** The two calls have the deadline themselves: whoever has not heard of their ends by then looks for them. */
    private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ClientMethod method;
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> result = new CallFuture<>();

    // guarded by this
    private int underWay;

    /** One of the two has failed and may have been executed. */
    private boolean mayHaveRun;

    private @Nullable Leg first;
    private @Nullable Leg second;

    /** The leg that says how the result ends; null until there is one. */
    private @Nullable Leg deciding;

    /** The other leg has failed before {@link #deciding} and may have been executed. */
    private boolean otherMayHaveRun;

    private @Nullable Future<?> timer;

    /** This stands, or has stood, in the list of an event loop. */
    private boolean isUntold;

    /** One of the two calls. */
    static final class Leg {
        final ClientMethod.Async call;
        final boolean isAgain;

        /** What ends with the call; null until it has begun. */
        @Nullable
        CallFuture<@Nullable Object> answered;

        /** Its end is counted. */
        boolean isOver;

        @Nullable
        Object value;

        @Nullable
        Throwable failure;

        Leg(ClientMethod.Async call, boolean isAgain) {
            this.call = call;
            this.isAgain = isAgain;
        }
    }

    Hedge(ClientMethod method, Object[] arguments, Metadata metadata, long deadlineNanos) {
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
        this.deadlineNanos = deadlineNanos;
    }

    /** @param beganNanos when its caller made the call, on this thread */
    CallFuture<@Nullable Object> start(long beganNanos, long afterNanos) {
        Leg one = new Leg(new ClientMethod.Async(method, arguments, metadata, deadlineNanos, null, result), false);
        synchronized (this) {
            first = one;
        }
        begin(one, beganNanos);
        if (!result.isDone()) {
            look(this::again, afterNanos);
        }
        // whoever ends it, such as its caller: a second call that begins behind this finds the result at its end
        result.onEnd((value, failure) -> {
            stopLooking();
            giveUpAll();
        });
        return result;
    }

    private void look(Runnable task, long nanos) {
        synchronized (this) {
            // asked for here: a timer that is over before it is stored would be stored over the one that it has asked
            // for
            timer = method.route().timer(task, nanos);
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
            // which would keep the arguments and the result until then
            last.cancel(false);
        }
    }

    /** On an event loop. Costs a retry if it is sent. */
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
                new ClientMethod.Async(method, arguments, metadata, deadlineNanos, one.call.address(), result), true);
        synchronized (this) {
            second = other;
        }
        begin(other, method.route().ticker().nanoTime());
        lookAtTheDeadline();
    }

    private void lookAtTheDeadline() {
        if (!result.isDone()) {
            long left = deadlineNanos - method.route().ticker().nanoTime();
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
                // the first has ended, or is about to end the result by its own failure
                return;
            }
            if (leg.isAgain && !method.route().budget().spend()) {
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
        // what is thrown there goes to a stage that nobody looks at, such as that a caller's stack has ended
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

    /** One list has room for this, once: whoever is in none is found by a timer. */
    private synchronized boolean isFirstToWait() {
        boolean isFirst = !isUntold;
        isUntold = true;
        return isFirst;
    }

    @Override
    boolean endUntold() {
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

    /** A failure counts only when nobody else can still succeed. */
    private void ended(Leg leg, @Nullable Object value, @Nullable Throwable failure) {
        boolean isUnsent = leg.isAgain && leg.call.address() == null;
        synchronized (this) {
            if (!leg.isOver) {
                leg.isOver = true;
                leg.value = value;
                leg.failure = failure;
                underWay--;
                if (deciding == null && (failure == null || underWay == 0)) {
                    deciding = leg;
                    otherMayHaveRun = mayHaveRun;
                }
                mayHaveRun |= !(failure instanceof RPCXException known
                        && known.executed() == RPCXException.Executed.NOT_EXECUTED);
                if (isUnsent) {
                    // no server has had anything of it
                    method.route().budget().giveBack();
                }
            }
        }
        tell();
    }

    /** Tells how the call has ended, once that is known; again where that has failed. */
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
        // also where the caller has ended the result himself: it lets go of what the call held
        if (decided.failure == null) {
            result.bring(decided.value);
        } else {
            result.fail(ClientMethod.told(decided.failure, other));
        }
    }

    /** One of the two that has ended stays as it is. */
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
