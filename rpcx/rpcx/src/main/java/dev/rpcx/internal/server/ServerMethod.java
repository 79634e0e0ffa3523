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
 * Published method, with everything that is found out about it by reflection when the server is built.
 *
 * @param number number of the method on the wire, from 1
 * @param shape shape of the method, as {@link MethodShape} defines it; clients compare it with theirs
 * @param arguments parameters of the method, one by one, as classic requests carry them
 * @param result codec of the result, or of the items of the stream that the method returns
 * @param handle takes the arguments as one array, and returns the result
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
        // A stage that is not passive may do its work when a dependent is attached. A cancel has to interrupt that
        // work, so the dependent is attached here, on the handler's thread. The publisher of a stream is not treated as
        // a stage.
        return !returnsStream && result instanceof CompletionStage<?> stage && !Stages.isPassive(stage)
                ? call.own(stage)
                : result;
    }

    /**
     * Returns the stage to wait for when the result of a stage is itself a stage. If {@code stage} may do its work when
     * a dependent is attached, that work is done where the handlers run. Any thread may call this.
     *
     * @param call context of the call that is handled
     * @return {@code stage} itself if no work is done when a dependent is attached to it
     */
    CompletionStage<?> brought(CompletionStage<?> stage, HandledContext call) {
        return Stages.isPassive(stage)
                ? stage
                : call.proceedLater(
                        new CallInvocation(service, name, new Object[0], Metadata.EMPTY, call), of -> stage);
    }

    /**
     * Returns the last step of a chain of interceptors, which runs the handler. If the handler throws, the error says
     * that the call has been executed. The call is taken from the invocation and not from the thread, since an
     * interceptor may have proceeded on a thread of its own.
     *
     * <p>The step fails if the handler returns a null that cannot be sent, or no stream where one is expected. So
     * interceptors see the same outcome as the caller.
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

    /** Returns the context of the call; null for a call that no server handles, such as in a test. */
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
