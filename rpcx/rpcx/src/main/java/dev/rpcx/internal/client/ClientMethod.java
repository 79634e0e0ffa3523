package dev.rpcx.internal.client;

import dev.rpcx.Method;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Describes one method of a client's interface, as reflection has found it. {@link ClientSteps} makes the calls of the
 * method. Objects of this class are immutable.
 */
public final class ClientMethod {
    /** How the caller of a method waits for the result. */
    public enum Kind {
        BLOCKING,
        ASYNC,
        ONE_WAY,
        STREAM
    }

    /**
     * Index by which connections find the method in their tables. Two methods of a client have the same index if they
     * call the same remote method with the same {@link MethodShape} and equal {@link MethodSchema schemas}. A one-way
     * method never has the same index as a method with a reply.
     */
    final int index;

    final Kind kind;
    final String service;
    final String name;
    final Codec<Object[]> parameters;

    /** Codec of the method's result. If the result is a stream, this is the codec of the stream's items. */
    final Codec<Object> result;

    private final int shape;

    /** Members of the request, the reply and all types in them, as this client declares them. */
    final MethodSchema schema;

    /** Nanoseconds that each call of the method gets. The context of the caller can limit or replace this time. */
    final long timeoutNanos;

    /** Computes the number that selects the instance for a call; null if no argument selects the instance. */
    private final @Nullable RouteKey routedBy;

    final boolean isIdempotent;

    /**
     * Nanoseconds after which a {@link Hedge} makes a call a second time if the call has no answer yet; 0 if no call is
     * hedged.
     */
    final long hedgeNanos;

    /** Codec of the items of the stream that the method takes as its argument; null if the method takes no stream. */
    final @Nullable Codec<Object> items;

    public ClientMethod(
            int index,
            Kind kind,
            String service,
            String name,
            Codec<Object[]> parameters,
            Codec<Object> result,
            int shape,
            MethodSchema schema,
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
        this.schema = schema;
        this.timeoutNanos = timeoutNanos;
        this.routedBy = routedBy;
        this.isIdempotent = marked != null && marked.idempotent();
        this.hedgeNanos = marked == null ? 0 : TimeUnit.MILLISECONDS.toNanos(marked.hedgeMillis());
        this.items = items;
    }

    /**
     * Returns whether the method's argument or result is a stream. Calls of such a method are not sent again after
     * a byte has been sent.
     */
    boolean hasStream() {
        return items != null || kind == Kind.STREAM;
    }

    /** Returns whether one of the arguments selects the instance for a call. */
    boolean isRouted() {
        return routedBy != null;
    }

    /** Returns the number that selects the instance for a call; 0 if no argument selects the instance. */
    int key(Object[] arguments) {
        if (routedBy == null) {
            return 0;
        }
        try {
            return routedBy.of(arguments);
        } catch (CodecException e) {
            throw ClientCallErrors.unusableArguments(e);
        }
    }

    /**
     * Compares how the two sides encode the method's parameters and, unless the method is one-way, its result.
     *
     * @param serversShape {@link MethodShape} of the method at the server
     * @return text that describes the difference; null if the two sides can read each other's messages, or if the
     *     server's shape is unknown
     */
    @Nullable
    String difference(int serversShape) {
        return MethodShape.difference(shape, serversShape, kind != Kind.ONE_WAY);
    }

    /**
     * Uses the codecs of the method once, so that the first call does not have to load their classes. The constructors
     * of messages can run, with the values that an empty message has.
     */
    void useCodecs() {
        use(parameters);
        use(result);
        if (items != null) {
            use(items);
        }
    }

    private static <T> void use(Codec<T> codec) {
        try {
            ByteBuf out = Unpooled.buffer();
            codec.write(codec.read(Unpooled.buffer()), out);
            codec.read(out);
        } catch (Throwable e) {
            // A type may have no value for an empty message, or may refuse it. The classes are loaded all the same.
        }
    }

    @Override
    public String toString() {
        return service + "/" + name;
    }

    String publishedName() {
        return MethodDictionary.key(service, name);
    }
}
