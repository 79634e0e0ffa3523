package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.TimedContext;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Makes the calls of one method. The calls can begin on any thread, and each goes through these steps:
 *
 * <ol>
 *   <li>time: {@code TimedContext} sets the deadline; {@link #times} measures how long answers take, and decides
 *       whether a call without an answer had enough time
 *   <li>breaker: {@link Route#called} permits or refuses the call; {@link Route#recordOutcome} records how the call has
 *       ended
 *   <li>route: {@link #route} returns a connection to an instance, or lets the call wait for a connection
 *   <li>writer: {@link #writer} takes a slot of the connection, that is, room for one call, and writes the request
 *   <li>wire: {@link ClientCall} sends the request and receives the reply
 *   <li>attempts: if an attempt has failed, {@link Attempts} decides whether the call goes back to the route step, or
 *       the caller gets the error
 *   <li>reader: {@link #reader} decodes the result
 * </ol>
 *
 * <p>A {@link BlockingCall}, a {@link FutureCall} or a {@link ClientStream} leads the call through the steps; these
 * classes differ in how the caller waits. Objects of this class are immutable, except for {@link #times}.
 */
public final class ClientSteps {
    private static final Object[] NO_ARGUMENTS = {};

    final ClientMethod method;
    final AnswerTimes times;
    final Route route;
    public final RequestWriter writer;
    final ReplyReader reader;

    /** Exceptions that arrive as themselves, since the method or another form of it declares them. */
    private final DeclaredErrors errors;

    public ClientSteps(ClientMethod method, Route route) {
        this(method, route, DeclaredErrors.NONE);
    }

    ClientSteps(ClientMethod method, Route route, DeclaredErrors errors) {
        this.method = method;
        this.errors = errors;
        this.times = new AnswerTimes(method.timeoutNanos);
        this.route = route;
        this.writer = new RequestWriter(method, route);
        this.reader = new ReplyReader(method.result);
    }

    /**
     * Makes a call as {@link #call} does, for the caller of a proxy.
     *
     * @throws RPCXException with the stack trace of the calling thread, if the call fails
     * @throws Throwable an exception that the method declares, if the handler has thrown it
     */
    @Nullable
    Object invoke(Object @Nullable [] arguments, Metadata metadata) throws Throwable {
        try {
            return call(arguments, metadata);
        } catch (RPCXException e) {
            throw ClientCallErrors.atCaller(e, errors);
        }
    }

    /**
     * Returns what the future or the stream of a call fails with. This is a declared exception, if {@code failure} has
     * the state of one, and otherwise {@code failure} itself. For a blocking call the result is always {@code failure},
     * since {@link #invoke} looks for declared exceptions on the caller's thread.
     */
    Throwable told(Throwable failure) {
        boolean isTold = method.kind == ClientMethod.Kind.ASYNC || method.kind == ClientMethod.Kind.STREAM;
        return isTold && failure instanceof RPCXException error ? errors.thrown(error) : failure;
    }

    /**
     * Makes a call of the method, and waits for the reply if the method is a blocking one. If the method's result is a
     * stream, no call begins yet: each subscriber of the returned publisher starts a call.
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
        // A switch is avoided here, since the compiler creates a class for a switch over an enum. A call would load
        // that class, perhaps when memory is nearly exhausted.
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
     * Returns the deadline of the call that begins when somebody subscribes to a stream that the method has returned.
     * The deadline is never later than the deadline of {@code maker}.
     *
     * @param maker context in which the method was called; null if there was none
     */
    long deadline(@Nullable TimedContext maker) {
        return TimedContext.deadlineOf(method.timeoutNanos, route.ticker(), maker);
    }

    /**
     * Decides what the end of an attempt says of the instance that handled the attempt. Records the result at the
     * instance, and returns it. If another instance has refused the previous attempt and this attempt has been
     * answered, the refusal counts as a failure of the refusing instance.
     *
     * @param earlier the call's attempts before this attempt; null if there were none
     * @param used instance that handled the attempt
     * @param error error of the attempt; null for success
     * @param givenNanos nanoseconds that the call had left when the request of the attempt was written
     * @param serial how often the call's slot has been used; {@link AnswerTimes#isSampled} chooses by this number
     *     whether the answer time is measured
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
     * Returns what the end of an attempt says of the instance that handled the attempt. Also measures how long the
     * answer took, for a sample of the attempts that have succeeded.
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
     * Makes a trial count as answered as soon as the server first asks for items of the stream that the call sends. The
     * server asks for items only after the handler has begun. Without this method, a trial with a stream could last for
     * days. A trial is a call that tests the service for the circuit breaker, or tests an instance after failures. If
     * the call is not a trial, this method does nothing. Must be called before the call is sent.
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
