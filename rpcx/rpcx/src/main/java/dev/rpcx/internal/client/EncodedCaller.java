package dev.rpcx.internal.client;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.Chain;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.Names;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.buffer.ByteBuf;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** Makes the calls of {@link EncodedCalls} at one route. Thread-safe. */
final class EncodedCaller implements EncodedCalls {
    /** Codec of a message that is encoded: the bytes are the value. */
    private static final Codec<Object> MESSAGE = new Codec<>() {
        @Override
        public void write(Object value, ByteBuf out) {
            out.writeBytes((byte[]) value);
        }

        @Override
        public Object read(ByteBuf in) {
            byte[] bytes = new byte[in.readableBytes()];
            in.readBytes(bytes);
            return bytes;
        }
    };

    /** Codec of the only argument, which is the whole request. */
    private static final Codec<Object[]> REQUEST = new Codec<>() {
        @Override
        public void write(Object[] value, ByteBuf out) {
            MESSAGE.write(value[0], out);
        }

        @Override
        public Object[] read(ByteBuf in) {
            return new Object[] {MESSAGE.read(in)};
        }
    };

    private final ClientCore client;
    private final Route route;
    private final List<Interceptor> interceptors;
    private final Duration callTimeout;
    private final MethodSchema schema;

    EncodedCaller(
            ClientCore client, Route route, List<Interceptor> interceptors, Duration callTimeout, MethodSchema schema) {
        this.client = client;
        this.route = route;
        this.interceptors = interceptors;
        this.callTimeout = callTimeout;
        this.schema = schema;
    }

    @Override
    public EncodedCalls comparing(MethodSchema given) {
        return new EncodedCaller(client, route, interceptors, callTimeout, given);
    }

    @Override
    public CompletableFuture<byte[]> call(String service, String method, byte[] request) {
        return future(begin(service, method, ClientMethod.Kind.ASYNC, request));
    }

    @Override
    public CompletableFuture<byte[]> send(String service, String method, Flow.Publisher<byte[]> requests) {
        return future(begin(service, method, ClientMethod.Kind.ASYNC, requests));
    }

    @Override
    public Flow.Publisher<byte[]> receive(String service, String method, byte[] request) {
        return publisher(begin(service, method, ClientMethod.Kind.STREAM, request));
    }

    @Override
    public Flow.Publisher<byte[]> exchange(String service, String method, Flow.Publisher<byte[]> requests) {
        return publisher(begin(service, method, ClientMethod.Kind.STREAM, requests));
    }

    @SuppressWarnings("unchecked") // the method has the codec MESSAGE
    private static CompletableFuture<byte[]> future(Object result) {
        return (CompletableFuture<byte[]>) result;
    }

    @SuppressWarnings("unchecked") // the method has the codec MESSAGE
    private static Flow.Publisher<byte[]> publisher(Object result) {
        return (Flow.Publisher<byte[]>) result;
    }

    /**
     * Passes a call through the interceptors.
     *
     * @param argument the encoded request, or the publisher of the encoded items that the call sends
     * @return the future of the result or, if the method returns a stream, the publisher of its items
     */
    private Object begin(String service, String method, ClientMethod.Kind kind, Object argument) {
        boolean takesStream = argument instanceof Flow.Publisher<?>;
        boolean hasStream = takesStream || kind == ClientMethod.Kind.STREAM;
        ClientMethod called = new ClientMethod(
                client.numberOf(
                        Names.checked(service), Names.checked(method), MethodDictionary.UNKNOWN_SHAPE, schema, true),
                kind,
                service,
                method,
                takesStream ? Streams.NO_PARAMETERS : REQUEST,
                MESSAGE,
                MethodDictionary.UNKNOWN_SHAPE,
                schema,
                (hasStream ? ClientProxy.STREAM_TIMEOUT : callTimeout).toNanos(),
                null,
                null,
                takesStream ? MESSAGE : null);
        ClientSteps steps = new ClientSteps(called, route);
        Interceptor.Next chain = Chain.of(interceptors, call -> steps.invoke(call.arguments(), call.metadata()));
        @Nullable Object result;
        try {
            result = chain.proceed(
                    new CallInvocation(service, method, new Object[] {argument}, CurrentCall.outgoing(), null));
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw ClientCallErrors.interceptorFailed(ThrowableText.words(e), RPCXException.Executed.MAYBE, e);
        }
        return Objects.requireNonNull(result);
    }
}
