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
 * The steps of each call of one method, in the order in which a call goes through them. There is one object of this
 * class for each method:
 *
 * <ol>
 *   <li>time: {@code TimedContext} sets the deadline; {@link #times} measures how long answers take, and decides what a
 *       missing answer means
 *   <li>breaker: {@link Route#called} permits or refuses the call; {@link Route#recordOutcome} records how the call has
 *       ended
 *   <li>route: {@link #route} returns a connection to an instance, or lets the call wait for one
 *   <li>writer: {@link #writer} takes a slot of the connection and writes the request into it
 *   <li>wire: {@link ClientCall} is sent, and gets its reply
 *   <li>attempts: when an attempt has failed, {@link Attempts} decides whether the call begins again at the route, or
 *       its caller gets the error
 *   <li>reader: {@link #reader} decodes the result
 * </ol>
 *
 * <p>Calls begin here, on any thread, and are made by a {@link BlockingCall}, a {@link FutureCall} or a
 * {@link ClientStream}, which differ in how they wait. Immutable, except for {@link #times}.
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

    /**
     * Makes a call.
     *
     * @return result of a blocking call; future of an asynchronous call; publisher, if the method's result is a stream;
     *     null for a one-way call
     */
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
        // Not a switch: its table is a class, which would first be loaded by a call, perhaps when memory is nearly
        // exhausted.
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
     * Returns the deadline of a call that a subscriber of a stream makes.
     *
     * @param maker context in which the method that returns the stream was called; null if there was none. A subscriber
     *     gets no more time than that context has.
     */
    long deadline(@Nullable TimedContext maker) {
        return TimedContext.deadlineOf(method.timeoutNanos, route.ticker(), maker);
    }

    /**
     * Decides what the end of an attempt means, and records it at the instance that had the attempt. If another
     * instance has refused the previous attempt, the refusal may now count as a failure of that instance.
     *
     * @param earlier the attempts before this one; null if there were none
     * @param error null for success
     * @param givenNanos remaining time of the call when it was sent
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

    /** Returns what the end of a call says of the instance that had it. Also measures the answer time of some calls. */
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
     * If the call is a trial, of the circuit or of an instance, makes the trial end when the server first gives credit,
     * since a call that sends a stream may last for days. Only a handler that has begun gives credit. Called before the
     * call is sent.
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
