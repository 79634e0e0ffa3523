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
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.schema.MethodSchema;
import io.netty.buffer.Unpooled;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Method that a server publishes, with everything that reflection has found out about the method when the server was
 * built.
 *
 * @param number number that identifies the method on the native wire, from 1
 * @param shape number that says how the parameters and the result are encoded; clients compare this number with their
 *     own: see {@link MethodShape}
 * @param schema members of the request, the reply and all types in them; clients compare its hash with their own
 * @param arguments parameters of the method, one by one, as requests of the classic wire carry them; empty if the
 *     method takes a stream
 * @param result codec of the result or, if the method returns a stream, of each item
 * @param errors exceptions that the method declares and that are sent as themselves
 * @param handle calls the user's method: takes the arguments as one array, and returns the result
 * @param items codec of each item of the stream that the method takes; null if the method takes no stream
 * @param chain runs the interceptors and, after them, the handle; null if there are no interceptors
 * @param admission limits how many handlers of this method run at the same time; null if the handlers run on the event
 *     loop
 */
public record ServerMethod(
        int number,
        String service,
        String name,
        int shape,
        MethodSchema schema,
        RunOn.Place place,
        Codec<Object[]> parameters,
        List<ClassicParameter> arguments,
        Codec<Object> result,
        boolean returnsStream,
        @Nullable Codec<Object> items,
        DeclaredErrors errors,
        MethodHandle handle,
        Interceptor.@Nullable Next chain,
        @Nullable AdmissionLimit admission) {
    /** Text of the error for a call whose handler should have returned a stream but has not. */
    static final String NO_STREAM = "no stream";

    /**
     * Runs the interceptors and the handler on the calling thread. An interceptor can also run the handler later or on
     * another thread.
     *
     * @param call context of the call
     * @return result of the first interceptor, or of the handler if there are no interceptors. If the result is a stage
     *     that may be lazy, {@link HandledContext#own(CompletionStage)} replaces it by a new stage, which belongs to
     *     this call alone
     */
    @Nullable
    Object invoke(Object[] values, Metadata metadata, HandledContext call) throws Throwable {
        Object result = chain == null
                ? (Object) handle.invokeExact(values)
                : chain.proceed(new CallInvocation(service, name, values, metadata, call));
        // A stage that is not passive may be lazy, that is, start its work when a callback is attached to it. The
        // callback is attached here, on the handler's thread, so that a cancel of the call can interrupt that work. The
        // publisher of a stream is never treated as a stage.
        return !returnsStream && result instanceof CompletionStage<?> stage && !Stages.isPassive(stage)
                ? call.own(stage)
                : result;
    }

    /**
     * Returns the stage that the call has to wait for next, after the stage of an interceptor has ended with another
     * stage as its result. The other stage may be lazy, that is, start its work when a callback is attached to it. In
     * this case, the callback is attached where the method's handlers run, so that the work is done there. Any thread
     * may call this method.
     *
     * @param stage the other stage, that is, the result of the interceptor's stage
     * @param call context of the call
     * @return {@code stage} itself if it is certainly not lazy; otherwise a new stage that ends in the same way as
     *     {@code stage}, or fails earlier if the call ends earlier
     */
    CompletionStage<?> brought(CompletionStage<?> stage, HandledContext call) {
        return Stages.isPassive(stage)
                ? stage
                : call.proceedLater(
                        new CallInvocation(service, name, new Object[0], Metadata.EMPTY, call), of -> stage);
    }

    /**
     * Returns the last step of a chain of interceptors: the step that runs the handler. The step takes the call from
     * the invocation and not from the calling thread, since an interceptor can proceed on a thread of its own.
     *
     * <p>If the handler throws an {@link RPCXException}, the exception that the step throws always says that the call
     * has been executed. The step also fails if the method returns a stream and the handler has returned none, or if
     * the handler has returned null and the codec cannot write null. So interceptors see the same outcome as the
     * caller.
     *
     * @param parameters types of the method's parameters; if an interceptor passes arguments that do not fit these
     *     types, the step fails before the handler starts
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
                throw e.executed() == RPCXException.Executed.EXECUTED ? e : ServerCallErrors.thrownByHandler(e);
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

    /** Returns the context of a call at the server; null if no server handles the call, for example in a test. */
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
     * Returns the text of the error for a call whose handler has returned null. Returns null if the codec can write
     * null.
     */
    @SuppressWarnings("NullAway") // the codec throws if it cannot write null
    private static @Nullable String nullRefused(Codec<Object> codec) {
        try {
            codec.write(null, Unpooled.buffer());
            return null;
        } catch (CodecException e) {
            return unsendable(e);
        }
    }

    /**
     * Returns the text of the error for a result that cannot be encoded. The native wire and the classic wire use this
     * text.
     */
    static String unsendable(CodecException refused) {
        return ServerCallErrors.UNSENDABLE + refused.getMessage();
    }
}
