package dev.rpcx.internal.server;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.Chain;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.call.MethodShape;
import io.netty.buffer.Unpooled;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Published method, with everything about it that has to be found out by reflection. This is found out once, when the
 * server is built.
 *
 * @param number number of the method on the wire, from 1
 * @param shape shape of the method, as {@link MethodShape} defines it; clients compare it with theirs
 * @param arguments parameters of the method, one by one, as classic requests carry them
 * @param handle takes the arguments as one array, and returns the result
 * @param returnsStream whether the method returns a stream; the codec {@code result} is then the codec of the stream's
 *     items
 * @param items codec of the items of the stream that the method takes; null if it takes none
 * @param chain runs the interceptors and then the handle; null if there are no interceptors
 * @param admission limit of the number of handlers of this method; null if the handlers run on the event loop
 */
public record ServerMethod(
        int number,
        String service,
        String name,
        long schemaHash,
        int shape,
        RunOn.Place place,
        Codec<Object[]> parameters,
        List<ClassicParameter> arguments,
        Codec<Object> result,
        boolean returnsStream,
        @Nullable Codec<Object> items,
        MethodHandle handle,
        Interceptor.@Nullable Next chain,
        @Nullable AdmissionLimit admission) {
    /** Text of the error for a call whose handler has to return a stream and has not returned one. */
    static final String NO_STREAM = "no stream";

    /**
     * Runs the interceptors and the handler, on the calling thread.
     *
     * @param call context of the call that is handled
     * @return result of the handler or of an interceptor
     */
    @Nullable
    Object invoke(Object[] values, Metadata metadata, HandledContext call) throws Throwable {
        Object result = chain == null
                ? (Object) handle.invokeExact(values)
                : chain.proceed(new CallInvocation(service, name, values, metadata, call));
        // A stage for which Stages.isPassive returns false may do its work when a dependent is attached, on the thread
        // that attaches the dependent. Such work belongs to the handler or to an interceptor, and a cancel has to
        // interrupt it. So the dependent is attached here, on the handler's thread. The publisher of a stream may be a
        // stage as well, but is not treated as a stage.
        return !returnsStream && result instanceof CompletionStage<?> stage && !Stages.isPassive(stage)
                ? call.own(stage)
                : result;
    }

    /**
     * Prepares {@code stage} for being waited for. An interceptor had returned another stage, and {@code stage} is the
     * result of that other stage. Any thread may have brought this result. If {@code stage} may do its work when a
     * dependent is attached, that work is done where the handlers run.
     *
     * @param call context of the call that is handled
     * @return stage to wait for: {@code stage} itself if no work is done when a dependent is attached to it
     */
    CompletionStage<?> brought(CompletionStage<?> stage, HandledContext call) {
        return Stages.isPassive(stage)
                ? stage
                : call.proceedLater(
                        new CallInvocation(service, name, new Object[0], Metadata.EMPTY, call), of -> stage);
    }

    /**
     * Makes the last step of a chain of interceptors, which runs the handler. If the handler throws, the error says
     * that the call has been executed. The step finds the call through the invocation, and not through the thread: an
     * interceptor may have proceeded on a thread that knows of no call, or of another one.
     *
     * <p>If the handler's result is a null that cannot be sent, or a stream is missing, this step fails. So
     * interceptors that watch calls see the same end as the caller. If there are no interceptors, nobody sees the
     * result here, and the call fails only when the result is encoded.
     *
     * @param parameters types of the method's parameters; if an interceptor passes arguments that do not fit them, the
     *     call fails before the handler starts
     * @param returnsStream whether the method returns a stream
     * @param codec codec of the method's result
     */
    public static Interceptor.Next entering(
            MethodHandle handle, List<Class<?>> parameters, boolean returnsStream, Codec<Object> codec) {
        String nullRefused = returnsStream ? null : nullRefused(codec);
        Interceptor.Next handler = call -> {
            HandledContext handled = handled(call);
            try {
                Object result = (Object) handle.invokeExact(call.arguments());
                if (returnsStream && !(result instanceof Flow.Publisher<?>)) {
                    throw new IllegalStateException(NO_STREAM);
                }
                if (result == null && nullRefused != null) {
                    throw new IllegalStateException(nullRefused);
                }
                return !returnsStream && handled != null && result instanceof CompletionStage<?> stage
                        ? handled.own(stage, nullRefused)
                        : result;
            } catch (RPCXException e) {
                throw e.executed() == RPCXException.Executed.EXECUTED ? e : new RPCXException(e.code(), e.getMessage());
            }
        };
        List<Class<?>> boxed = parameters.stream()
                .<Class<?>>map(type -> MethodType.methodType(type).wrap().returnType())
                .toList();
        Interceptor.Next end = call -> {
            checkArguments(call.arguments(), parameters, boxed);
            HandledContext handled = handled(call);
            return handled == null ? handler.proceed(call) : handled.handle(call, handler);
        };
        return call -> Chain.proceed(call, end);
    }

    /**
     * Returns the context of the call to which the invocation belongs. Returns null for a call that no server handles,
     * such as in a test.
     */
    private static @Nullable HandledContext handled(Interceptor.Invocation call) {
        return (HandledContext) Chain.given(call).handled;
    }

    private static void checkArguments(@Nullable Object[] arguments, List<Class<?>> parameters, List<Class<?>> boxed) {
        boolean fits = arguments.length == parameters.size();
        for (int i = 0; fits && i < arguments.length; i++) {
            Object each = arguments[i];
            fits = each == null
                    ? !parameters.get(i).isPrimitive()
                    : boxed.get(i).isInstance(each);
        }
        if (!fits) {
            throw new IllegalArgumentException(
                    "an interceptor has gone on with arguments that are not those of the method");
        }
    }

    /**
     * Returns the text of the error for a call whose handler has returned null. Returns null if a null result can be
     * sent.
     */
    @SuppressWarnings("NullAway") // the codec decides whether null can be written
    private static @Nullable String nullRefused(Codec<Object> codec) {
        try {
            codec.write(null, Unpooled.buffer());
            return null;
        } catch (CodecException e) {
            return unsendable(e);
        }
    }

    /** Returns the text of the error for a result that its codec refuses. Used for the calls of both wires. */
    static String unsendable(CodecException refused) {
        return "the result cannot be sent: " + refused.getMessage();
    }
}
