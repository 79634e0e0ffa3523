package dev.rpcx;

import dev.rpcx.codec.Codec;
import java.lang.invoke.MethodHandle;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A published method: all that reflection had to say, found once.
 *
 * @param number on the wire, from 1
 * @param call takes the arguments, returns the result
 * @param arguments of single parameters, as classic requests carry them
 */
record ServerMethod(
        int number,
        String service,
        String name,
        long schemaHash,
        RunOn.Place place,
        Codec<Object[]> parameters,
        List<Codec<Object>> arguments,
        Codec<Object> result,
        Interceptor.Next call) {

    @Nullable
    Object invoke(Object[] values, Metadata metadata) throws Throwable {
        return call.proceed(new Interceptor.Invocation(service, name, values, metadata));
    }

    /** The end of the chain: the handler itself. */
    static Interceptor.Next handler(MethodHandle handle) {
        return invocation -> (Object) handle.invokeExact(invocation.arguments());
    }
}
