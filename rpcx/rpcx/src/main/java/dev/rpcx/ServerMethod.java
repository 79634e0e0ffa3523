package dev.rpcx;

import dev.rpcx.codec.Codec;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * A published method: all that reflection had to say, found once.
 *
 * @param number on the wire, from 1
 * @param shape as {@link MethodShape} has it, for clients to compare
 * @param arguments of single parameters, as classic requests carry them
 * @param handle takes the arguments as an array, returns the result
 * @param brings a stream: the result's codec is that of its items
 * @param items of the stream that the method takes; null if it takes none
 * @param chain the interceptors and then the handle; null where there are none
 * @param admission how many run at once; null on the event loop
 */
record ServerMethod(
        int number,
        String service,
        String name,
        long schemaHash,
        int shape,
        RunOn.Place place,
        Codec<Object[]> parameters,
        List<ClassicParameter> arguments,
        Codec<Object> result,
        boolean brings,
        @Nullable Codec<Object> items,
        MethodHandle handle,
        Interceptor.@Nullable Next chain,
        @Nullable AdmissionLimit admission) {

    /** @param call being handled */
    @Nullable
    Object invoke(Object[] values, Metadata metadata, CallContext call) throws Throwable {
        Object result = chain == null
                ? (Object) handle.invokeExact(values)
                : chain.proceed(new Interceptor.Invocation(service, name, values, metadata, call));
        // A stage of somebody else's class may do its work once something is hung on it, and on the thread that does
        // that: such work is the handler's, or an interceptor's, and a cancel interrupts it. A publisher may be a stage
        // as well, and is none here.
        return !brings && result instanceof CompletionStage<?> stage && !Stages.isPassive(stage)
                ? call.own(stage)
                : result;
    }

    /**
     * What a stage of an interceptor has brought, on whatever thread: another stage. One that may do its work once
     * something is hung on it does that where the handlers run.
     *
     * @param call being handled
     */
    CompletionStage<?> brought(CompletionStage<?> stage, CallContext call) {
        return Stages.isPassive(stage)
                ? stage
                : call.proceedLater(
                        new Interceptor.Invocation(service, name, new Object[0], Metadata.EMPTY, call), of -> stage);
    }

    /**
     * The end of a chain of interceptors. What the handler throws has been executed. The invocation says which call it
     * is: an interceptor may have gone on to a thread that knows of no call, or of another one.
     *
     * @param brings as that of the method
     */
    static Interceptor.Next entering(MethodHandle handle, boolean brings) {
        Interceptor.Next handler = call -> {
            CallContext handled = call.handled;
            try {
                Object result = (Object) handle.invokeExact(call.arguments());
                return !brings && handled != null && result instanceof CompletionStage<?> stage
                        ? handled.own(stage)
                        : result;
            } catch (RPCXException e) {
                throw e.executed() == RPCXException.Executed.EXECUTED
                        ? e
                        : new RPCXException(e.code(), String.valueOf(e.getMessage()));
            }
        };
        Interceptor.Next end =
                call -> call.handled == null ? handler.proceed(call) : call.handled.handle(call, handler);
        return call -> CallContext.proceed(call, end);
    }
}
