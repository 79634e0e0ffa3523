package dev.rpcx.internal.client;

import dev.rpcx.Method;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.wire.MethodDictionary;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A method of a client's interface, with everything that reflection says of it. {@link ClientSteps} makes its calls.
 * Immutable.
 */
public final class ClientMethod {
    /** How the caller waits for the result. */
    public enum Kind {
        BLOCKING,
        ASYNC,
        ONE_WAY,
        STREAM
    }

    /**
     * Index of the method in the tables of connections. Two methods of this client's proxies have the same index if
     * they call the same remote method with the same shape, and if both or neither of them are one-way.
     */
    final int index;

    final Kind kind;
    final String service;
    final String name;
    final Codec<Object[]> parameters;

    /** Codec of the result. For a method whose result is a stream, codec of the stream's items. */
    final Codec<Object> result;

    private final int shape;

    /** Timeout of each call of the method, unless the context of the caller limits or replaces it. */
    final long timeoutNanos;

    /** Computes the routing key from one of the arguments; null if no argument chooses the instance. */
    private final @Nullable RouteKey routedBy;

    final boolean isIdempotent;

    /** Time after which a call is made a second time; 0 for a method whose calls are never made a second time. */
    final long hedgeNanos;

    /** Codec of the items of the stream that the method takes; null if it takes no stream. */
    final @Nullable Codec<Object> items;

    public ClientMethod(
            int index,
            Kind kind,
            String service,
            String name,
            Codec<Object[]> parameters,
            Codec<Object> result,
            int shape,
            long timeoutNanos,
            @Nullable RouteKey routedBy,
            @Nullable Method marked,
            @Nullable Codec<Object> items) {
        this.index = index;
        this.kind = kind;
        this.service = service;
        this.name = name;
        this.parameters = parameters;
        this.result = result;
        this.shape = shape;
        this.timeoutNanos = timeoutNanos;
        this.routedBy = routedBy;
        this.isIdempotent = marked != null && marked.idempotent();
        this.hedgeNanos = marked == null ? 0 : TimeUnit.MILLISECONDS.toNanos(marked.hedgeMillis());
        this.items = items;
    }

    /**
     * Whether the method's argument or its result is a stream. If an attempt of a call of such a method has been sent,
     * no other attempt may follow.
     */
    boolean hasStream() {
        return items != null || kind == Kind.STREAM;
    }

    /** Whether an argument decides which instance is called. */
    boolean isRouted() {
        return routedBy != null;
    }

    /** Returns the key by which the instance is chosen; 0 if no argument decides. */
    int key(Object[] arguments) {
        if (routedBy == null) {
            return 0;
        }
        try {
            return routedBy.of(arguments);
        } catch (CodecException e) {
            throw RequestWriter.unusable(e);
        }
    }

    /**
     * Compares the method's shape on this side with its shape at the server. Returns the difference as text if the two
     * sides could not read each other's messages; otherwise null.
     */
    @Nullable
    String difference(int serversShape) {
        return MethodShape.difference(shape, serversShape, kind != Kind.ONE_WAY);
    }

    @Override
    public String toString() {
        return service + "/" + name;
    }

    String publishedName() {
        return MethodDictionary.key(service, name);
    }
}
