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
 * A published method, with all that reflection has to say about it, found once.
 *
 * @param number number on the wire, from 1
 * @param shape shape of the method by {@link MethodShape}, for clients to compare
 * @param arguments the single parameters, as classic requests carry them
 * @param handle takes the arguments as an array, returns the result
 * @param returnsStream whether the method returns a stream; the codec of the result is then that of the stream's
 *     items
 * @param items codec of the items of the stream that the method takes; null if it takes none
 * @param chain the interceptors and then the handle; null where there are no interceptors
 * @param admission limit of the handlers that run at once; null on the event loop
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
    /** Text of the error for a caller whose handler has to return a stream and does not. */
    static final String NO_STREAM = "no stream";

    /** @param call context of the call that is handled */
    @Nullable
    Object invoke(Object[] values, Metadata metadata, HandledContext call) throws Throwable {
        Object result = chain == null
                ? (Object) handle.invokeExact(values)
                : chain.proceed(new CallInvocation(service, name, values, metadata, call));
        // A stage of another class than those of Stages.isPassive may do its work when a dependent is attached, on the
        // thread that attaches it. Such work is the handler's, or an interceptor's, and a cancel interrupts it; so the
        // dependent is attached here. A publisher may be a stage as well, but is not taken for one.
        return !returnsStream && result instanceof CompletionStage<?> stage && !Stages.isPassive(stage)
                ? call.own(stage)
                : result;
    }

    /**
     * Prepares a stage that the stage of an interceptor has brought, on whatever thread. A stage that may do its work
     * when a dependent is attached does it where the handlers run.
     *
     * @param call context of the call that is handled
     */
    CompletionStage<?> brought(CompletionStage<?> stage, HandledContext call) {
        return Stages.isPassive(stage)
                ? stage
                : call.proceedLater(
                        new CallInvocation(service, name, new Object[0], Metadata.EMPTY, call), of -> stage);
    }

    /**
     * Makes the last step of a chain of interceptors, which runs the handler. What the handler throws says that the
     * call has been executed. The invocation says which call it belongs to: an interceptor may have gone on to a thread
     * that knows of no call, or of another one. A null that cannot be sent, or a stream that is missing, fails here, so
     * that interceptors which watch calls see the end that the caller is told. Without interceptors nobody would see
     * it, and the result fails where it is encoded.
     *
     * @param parameters types of the method's parameters; arguments of an interceptor's own that do not fit them fail
     *     before the handler starts
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
     * Context of the call that the invocation belongs to; null for a call that no server handles, such as in a test.
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

    /** @return text of the error for the caller of a handler whose result is null; null where null can be sent */
    @SuppressWarnings("NullAway") // the codec decides where null can be
    private static @Nullable String nullRefused(Codec<Object> codec) {
        try {
            codec.write(null, Unpooled.buffer());
            return null;
        } catch (CodecException e) {
            return unsendable(e);
        }
    }

    /** Text of the error for a result that its codec refuses. The calls of both wires use it. */
    static String unsendable(CodecException refused) {
        return "the result cannot be sent: " + refused.getMessage();
    }
}
