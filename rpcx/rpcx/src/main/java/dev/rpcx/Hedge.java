package dev.rpcx;

import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * A call that is made a second time, elsewhere, when the first has not been answered after a while; whichever is
 * answered first counts, the other is cancelled. Both are where the caller ends the result itself. For methods that may
 * be executed twice. Second calls come out of the budget of retries. Source: Dean and Barroso, "The Tail at Scale",
 * 2013.
 */
final class Hedge {
    private final ClientMethod method;
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> result = new CallFuture<>();

    // guarded by this
    private int underWay;

    /** One of the two has failed and may have been executed. */
    private boolean mayHaveRun;

    private ClientMethod.@Nullable Async first;
    private ClientMethod.@Nullable Async second;

    Hedge(ClientMethod method, Object[] arguments, Metadata metadata, long deadlineNanos) {
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
        this.deadlineNanos = deadlineNanos;
    }

    /** @param beganNanos when its caller made the call, on this thread */
    CallFuture<@Nullable Object> start(long beganNanos, long afterNanos) {
        ClientMethod.Async one = new ClientMethod.Async(method, arguments, metadata, deadlineNanos, null, result);
        synchronized (this) {
            first = one;
        }
        begin(one, false, beganNanos);
        Future<?> timer = result.isDone() ? null : method.route().timer(this::again, afterNanos);
        // whoever ends it, such as its caller: a second call that begins behind this finds the result at its end
        result.onEnd((value, failure) -> {
            if (timer != null) {
                // which would keep the arguments and the result until then
                timer.cancel(false);
            }
            giveUpAll();
        });
        return result;
    }

    /** On an event loop. Costs a retry if it is sent. */
    private void again() {
        if (result.isDone()) {
            return;
        }
        ClientMethod.Async other;
        synchronized (this) {
            other = new ClientMethod.Async(
                    method, arguments, metadata, deadlineNanos, first == null ? null : first.address(), result);
            second = other;
        }
        begin(other, true, method.route().ticker().nanoTime());
    }

    private void begin(ClientMethod.Async call, boolean isAgain, long now) {
        synchronized (this) {
            if (isAgain && (underWay == 0 || result.isDone())) {
                // the first has ended, or is about to end the result by its own failure
                return;
            }
            if (isAgain && !method.route().budget().spend()) {
                return;
            }
            underWay++;
        }
        CallFuture<@Nullable Object> answered;
        try {
            answered = isAgain ? call.startAgain(now) : call.start(now);
            answered.onEnd((value, failure) -> ended(call, isAgain, value, failure));
        } catch (Throwable e) {
            ended(call, isAgain, null, e);
        }
    }

    private void ended(ClientMethod.Async call, boolean isAgain, @Nullable Object value, @Nullable Throwable failure) {
        if (isAgain && call.address() == null) {
            // no server has had anything of it
            method.route().budget().giveBack();
        }
        ended(value, failure);
    }

    /** A failure counts only when nobody else can still succeed. */
    private void ended(@Nullable Object value, @Nullable Throwable failure) {
        boolean last;
        boolean other;
        synchronized (this) {
            last = --underWay == 0;
            other = mayHaveRun;
            mayHaveRun |= !(failure instanceof RPCXException known
                    && known.executed() == RPCXException.Executed.NOT_EXECUTED);
        }
        if (failure == null) {
            result.bring(value);
        } else if (last) {
            result.fail(ClientMethod.told(failure, other));
        }
    }

    /** One of the two that has ended stays as it is. */
    private void giveUpAll() {
        ClientMethod.Async one;
        ClientMethod.Async other;
        synchronized (this) {
            one = first;
            other = second;
        }
        if (one != null) {
            one.giveUp();
        }
        if (other != null) {
            other.giveUp();
        }
    }
}
