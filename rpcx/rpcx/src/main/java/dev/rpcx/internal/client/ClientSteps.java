package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.TimedContext;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The steps of each call of one method, in the order in which a call passes them. Made once; what a step needs for all
 * calls of the method is a field:
 *
 * <ol>
 *   <li>time: {@code TimedContext} gives the deadline; {@link #times} learns how long answers take, and says what it
 *       means that one has not come
 *   <li>breaker: {@link Route#called} gives leave to go, {@link Route#recordOutcome} tells how the call has ended
 *   <li>route: {@link #route} gives a connection of an instance, or a wait for one
 *   <li>writer: {@link #writer} takes a slot there and writes the request into it
 *   <li>wire: {@link ClientCall} is sent, and told of its reply
 *   <li>attempts: {@link Attempts}, made when one has failed, has the call begin again at the route, or its caller told
 *   <li>reader: {@link #reader} decodes the result
 * </ol>
 *
 * <p>{@link BlockingCall}, {@link FutureCall} and {@link ClientStream} walk this list, and differ in how they wait:
 * that is decided here. Calls begin here, on any thread. Immutable, but for what {@link #times} has learnt.
 */
public final class ClientSteps {
    private static final Object[] NO_ARGUMENTS = {};

    final ClientMethod method;
    final AnswerTimes times;
    final Route route;
    public final RequestWriter writer;
    final ReplyReader reader;

    public ClientSteps(ClientMethod method, Route route) {
        this.method = method;
        this.times = new AnswerTimes(method.timeoutNanos);
        this.route = route;
        this.writer = new RequestWriter(method, route);
        this.reader = new ReplyReader(method.result);
    }

    /** Makes a call: it returns the result to whoever blocks for it, a future, or the stream that the method brings. */
    public @Nullable Object call(Object @Nullable [] arguments, Metadata metadata) {
        Object[] given = arguments == null ? NO_ARGUMENTS : method.items == null ? arguments : bound(arguments);
        if (method.kind == ClientMethod.Kind.STREAM) {
            return new ClientStream(this, given, metadata);
        }
        long now = route.ticker().nanoTime();
        long deadline = TimedContext.deadlineOf(method.timeoutNanos, now);
        if (method.kind == ClientMethod.Kind.BLOCKING) {
            Route.refuseInterrupted();
        }
        if (method.hedgeNanos > 0) {
            if (method.kind == ClientMethod.Kind.BLOCKING) {
                Route.refuseBlocking();
            }
            CallFuture<@Nullable Object> first =
                    new Hedge(this, given, metadata, deadline).start(now, method.hedgeNanos);
            return method.kind == ClientMethod.Kind.BLOCKING ? route.await(first, deadline) : first;
        }
        // no switch: its table would be a class of its own, first needed by a call whose memory may be at its end
        if (method.kind == ClientMethod.Kind.BLOCKING) {
            return BlockingCall.call(this, given, metadata, deadline);
        }
        CallFuture<@Nullable Object> made = new FutureCall(this, given, metadata, deadline, null, null).start(now);
        if (method.kind == ClientMethod.Kind.ASYNC) {
            return made;
        }
        FutureCall.failAtOnce(made);
        return null;
    }

    @SuppressWarnings("unchecked") // the proxied method declares this type
    private static Object[] bound(@Nullable Object[] arguments) {
        Flow.Publisher<Object> given = (Flow.Publisher<Object>) arguments[0];
        return given == null ? arguments : new Object[] {new BoundPublisher(given, CurrentCall.get())};
    }

    /**
     * @param maker context in which the method that returns the stream was called, null if there was none; the
     *     stream's subscribers come later, and get no more time than that context has
     */
    long deadline(@Nullable TimedContext maker) {
        return TimedContext.deadlineOf(method.timeoutNanos, route.ticker(), maker);
    }

    /**
     * Says what the end of an attempt means, and tells it to the instance that had the attempt, and to the one that has
     * refused the attempt before.
     *
     * @param earlier the attempts before this one; null if there were none
     * @param error null for success
     * @param givenNanos time left to the call when it was sent
     * @param serial number of this use of the call's slot
     */
    Health.Outcome ended(
            @Nullable Attempts earlier,
            ClientAddress used,
            @Nullable RPCXException error,
            long givenNanos,
            long deadlineNanos,
            long serial) {
        Health.Outcome outcome = outcome(error, givenNanos, deadlineNanos, serial);
        used.ended(outcome, deadlineNanos - givenNanos);
        if (earlier != null) {
            earlier.compare(this, used, outcome);
        }
        return outcome;
    }

    /**
     * What the end of a call says of the instance that had it. A part of the answers is measured.
     */
    private Health.Outcome outcome(@Nullable RPCXException error, long givenNanos, long deadlineNanos, long serial) {
        if (error != null) {
            return Health.Outcome.of(
                    error, times, givenNanos, deadlineNanos - route.ticker().nanoTime());
        }
        if (times.isSampled(serial)) {
            long now = route.ticker().nanoTime();
            times.answered(givenNanos - (deadlineNanos - now), now);
        }
        return Health.Outcome.ANSWERED;
    }

    /**
     * Has the first credit from the server end a trial. A call that takes a stream may last for days; where it is a
     * trial, of the circuit or of an instance, the server counts as having answered once it asks for items, which only
     * a handler that has begun does. Called before the call is sent.
     */
    void endTrialOnceTaken(ClientCall call, StreamSender upload, long deadline, long permit) {
        ClientAddress used = call.connection.address();
        long begun = deadline - call.givenNanos;
        if (permit != CircuitBreaker.PERMITTED || used.health().isUnproven()) {
            upload.onFirstCredit(() -> {
                used.ended(Health.Outcome.ANSWERED, begun);
                if (permit != CircuitBreaker.PERMITTED) {
                    route.recordOutcome(Health.Outcome.ANSWERED, permit);
                }
            });
        }
    }
}
