package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Makes the calls of one method of a client's interface on the classic wire, without retries and hedges. */
final class ClassicMethod {
    private final ClientMethod.Kind kind;
    private final String service;
    private final String name;
    private final List<String> types;
    private final List<Integer> numbers;
    private final List<ClassicParameter> parameters;
    private final Codec<Object> result;
    private final long timeoutNanos;
    private final AnswerTimes times;
    private final Route route;

    /** Exceptions that arrive as themselves, since the method or another form of it declares them. */
    private final DeclaredErrors errors;

    ClassicMethod(
            Method method,
            ClientMethod.Kind kind,
            String service,
            String name,
            Codecs codecs,
            long timeoutNanos,
            Route route,
            DeclaredErrors errors) {
        if (kind == ClientMethod.Kind.STREAM || Streams.itemsTaken(method) != null) {
            throw new IllegalArgumentException(method + ": a stream on the classic wire (expected: the native one)");
        }
        this.kind = kind;
        this.service = service;
        this.name = name;
        this.parameters = ClassicParameter.of(method, codecs);
        this.types = parameters.stream().map(ClassicParameter::type).toList();
        this.numbers = ClassicParameter.numbers(parameters);
        this.result = codecs.result(method);
        this.timeoutNanos = timeoutNanos;
        this.times = new AnswerTimes(timeoutNanos);
        this.route = route;
        this.errors = errors;
    }

    /**
     * Makes a call.
     *
     * @throws RPCXException with the stack trace of the calling thread, if the call fails
     * @throws Throwable an exception that the method declares, if the handler has thrown it
     */
    @Nullable
    Object invoke(Object[] arguments) throws Throwable {
        try {
            return call(arguments);
        } catch (RPCXException e) {
            throw ClientCallErrors.atCaller(e, errors);
        }
    }

    private @Nullable Object call(Object[] arguments) {
        if (kind == ClientMethod.Kind.BLOCKING) {
            // Refuses a call by an interrupted thread or on an event loop, before anything is sent.
            Route.refuseInterrupted();
            Route.refuseBlocking();
            long deadline = deadline();
            return route.await(start(arguments, deadline), deadline);
        }
        CallFuture<@Nullable Object> started = start(arguments, deadline());
        if (kind == ClientMethod.Kind.ASYNC) {
            return started;
        }
        FutureCall.failAtOnce(started);
        started.onEnd((result, thrown) -> {
            if (thrown != null) {
                route.oneWayFailed(service + "/" + name, thrown);
            }
        });
        return null;
    }

    private long deadline() {
        return TimedContext.deadlineOf(timeoutNanos, route.ticker().nanoTime());
    }

    private CallFuture<@Nullable Object> start(Object[] arguments, long deadline) {
        List<byte[]> values = new ArrayList<>(arguments.length);
        for (ClassicParameter parameter : parameters) {
            values.add(encoded(parameter.codec(), arguments[parameter.position()]));
        }
        long permit = route.called();
        CallFuture<@Nullable Object> future = new CallFuture<>();
        if (permit != CircuitBreaker.PERMITTED) {
            future.onEnd((result, thrown) -> route.releasePermit(permit));
        }
        Route.WaitingBytes held = route.waitingBytes();
        Route.Wait wait = route.awaitClassic(deadline, times, permit, (connected, failure) -> {
            held.giveBack();
            if (connected == null) {
                future.fail(LocalFailure.asPublicException(Objects.requireNonNull(failure)));
            } else if (!future.isDone()) {
                send(connected, values, deadline, permit, future);
            } else {
                // the caller has ended the call
                future.releaseReferences();
            }
        });
        if (wait != null) {
            // If the caller ends the call, the call stops waiting for a connection. If the wait has ended already, this
            // callback does nothing.
            future.onEnd((result, thrown) -> {
                if (wait.giveUp()) {
                    future.releaseReferences();
                }
            });
            future.onEnd(held);
            try {
                held.hold(values.stream().mapToInt(value -> value.length).sum());
            } catch (RPCXException tooMuch) {
                // If the wait has ended, the call may have been sent, so the caller must not be told that the call was
                // refused.
                if (wait.giveUp()) {
                    future.fail(tooMuch);
                }
            }
        }
        if (kind == ClientMethod.Kind.ONE_WAY) {
            // When the client is closed, the client waits for this call, even if the request has been sent: on the
            // classic wire, a server gives up the calls of a client that is gone.
            route.awaitOnClose(future);
        }
        return future;
    }

    private void send(
            ClassicClientConnection connected,
            List<byte[]> values,
            long deadline,
            long permit,
            CallFuture<@Nullable Object> future) {
        long sentNanos = route.ticker().nanoTime();
        CallFuture<byte[]> reply =
                connected.send(id -> ClassicWire.request(id, service, name, types, numbers, values), deadline);
        // when the caller cancels the call, the connection stops waiting for the reply
        future.onEnd((result, thrown) -> reply.cancel(false));
        reply.onEnd((bytes, thrown) -> {
            try {
                if (bytes != null) {
                    long now = route.ticker().nanoTime();
                    times.answered(now - sentNanos, now);
                    route.recordOutcome(Health.Outcome.ANSWERED, permit);
                    read(bytes, future);
                } else {
                    RPCXException error = Health.named(error(thrown), route, service + "/" + name);
                    long left = deadline - route.ticker().nanoTime();
                    // A LocalFailure says nothing about the server. Nor does an exception of another class than
                    // RPCXException: the caller has ended the call, or the request could not be sent.
                    boolean isOwn = error instanceof LocalFailure || !(thrown instanceof RPCXException);
                    Health.Outcome outcome = isOwn
                            ? Health.Outcome.UNKNOWN
                            : Health.Outcome.of(error, times, deadline - sentNanos, left);
                    route.recordOutcome(outcome, permit);
                    RPCXException told = LocalFailure.asPublicException(error);
                    future.fail(kind == ClientMethod.Kind.ASYNC ? errors.thrown(told) : told);
                }
            } catch (Throwable noMemory) {
                // without this, the future would never end
                future.fail(noMemory);
            } finally {
                // user code, such as a constructor of the result, may have set the interrupt flag of this thread
                LoopThread.forgetInterrupt();
            }
        });
    }

    private static byte[] encoded(Codec<Object> codec, Object value) {
        ByteBuf out = Unpooled.buffer();
        try {
            codec.write(value, out);
        } catch (CodecException e) {
            throw ClientCallErrors.unusableArguments(e);
        }
        return ByteBufUtil.getBytes(out);
    }

    private void read(byte[] bytes, CallFuture<@Nullable Object> future) {
        try {
            future.succeed(result.read(Unpooled.wrappedBuffer(bytes)));
        } catch (Throwable e) {
            // an Error is caught too, so that the caller gets an RPCXException that says that the call was executed
            future.fail(ClientCallErrors.unreadableResult(e));
        }
    }

    private static RPCXException error(@Nullable Throwable thrown) {
        if (thrown instanceof RPCXException known) {
            return known;
        }
        return ClientCallErrors.unsentRequest(thrown);
    }
}
