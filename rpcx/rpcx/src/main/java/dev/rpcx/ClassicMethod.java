package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Codecs;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Ticker;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A method of a client's interface on the classic wire. */
final class ClassicMethod {
    private final ClientMethod.Kind kind;
    private final String service;
    private final String name;
    private final List<String> types = new ArrayList<>();
    private final List<Codec<Object>> parameters = new ArrayList<>();
    private final Codec<Object> result;
    private final long timeoutNanos;
    private final Supplier<CompletableFuture<ClassicClientConnection>> connection;
    private final Ticker ticker;

    ClassicMethod(
            Method method,
            ClientMethod.Kind kind,
            String service,
            String name,
            Codecs codecs,
            long timeoutNanos,
            Supplier<CompletableFuture<ClassicClientConnection>> connection,
            Ticker ticker) {
        if (kind == ClientMethod.Kind.STREAM || Streams.itemsTaken(method) != null) {
            throw new IllegalArgumentException(method + ": a stream on the classic wire (expected: the native one)");
        }
        this.kind = kind;
        this.service = service;
        this.name = name;
        for (Type type : method.getGenericParameterTypes()) {
            types.add(type.getTypeName());
            parameters.add(codecs.value(type));
        }
        this.result = codecs.result(method);
        this.timeoutNanos = timeoutNanos;
        this.connection = connection;
        this.ticker = ticker;
    }

    @Nullable
    Object call(Object[] arguments) {
        if (kind == ClientMethod.Kind.BLOCKING) {
            // before anything is sent: a call that is refused was not made
            Route.refuseBlocking();
            return await(start(arguments));
        }
        CompletableFuture<@Nullable Object> started = start(arguments);
        return kind == ClientMethod.Kind.ASYNC ? started : null;
    }

    private CompletableFuture<@Nullable Object> start(Object[] arguments) {
        long deadline = CallContext.deadlineOf(timeoutNanos, ticker);
        List<byte[]> values = new ArrayList<>(arguments.length);
        for (int i = 0; i < arguments.length; i++) {
            values.add(encoded(parameters.get(i), arguments[i]));
        }
        RPCXFuture<@Nullable Object> future = new RPCXFuture<>();
        connection
                .get()
                .thenCompose(connected ->
                        connected.send(id -> ClassicWire.request(id, service, name, types, values), deadline))
                .whenComplete((bytes, thrown) -> end(future, bytes, thrown));
        return future;
    }

    private static byte[] encoded(Codec<Object> codec, Object value) {
        ByteBuf out = Unpooled.buffer();
        try {
            codec.write(value, out);
        } catch (CodecException e) {
            throw new RPCXException(
                    RPCXException.Code.INVALID, String.valueOf(e.getMessage()), RPCXException.Executed.NOT_EXECUTED, e);
        }
        return ByteBufUtil.getBytes(out);
    }

    private void end(RPCXFuture<@Nullable Object> future, byte @Nullable [] bytes, @Nullable Throwable thrown) {
        if (thrown != null || bytes == null) {
            Throwable cause =
                    thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
            future.completeExceptionally(
                    cause instanceof RPCXException e
                            ? e
                            : new RPCXException(
                                    RPCXException.Code.UNAVAILABLE,
                                    "no connection: " + cause,
                                    RPCXException.Executed.NOT_EXECUTED,
                                    cause));
            return;
        }
        try {
            future.complete(result.read(Unpooled.wrappedBuffer(bytes)));
        } catch (RuntimeException e) {
            future.completeExceptionally(new RPCXException(
                    RPCXException.Code.INVALID,
                    "the result cannot be read: " + e.getMessage(),
                    RPCXException.Executed.EXECUTED,
                    e));
        }
    }

    private static @Nullable Object await(CompletableFuture<@Nullable Object> future) {
        try {
            return future.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RPCXException known ? known : new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RPCXException(
                    RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.MAYBE);
        }
    }
}
