package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/** A call that a server handles, as interceptors see the call. Only the server implements this interface. */
public interface HandledCall {
    /**
     * Runs the next step of the interceptor chain in the context of this call, and returns the result of the step. The
     * calling thread can have any context or none. If the calling thread is an event loop on which the handler of this
     * call must not run, such as the event loop of another connection, this method hands the step to a thread on which
     * the handler can run, and returns a {@code CompletionStage} of the result.
     *
     * @throws RPCXException if this call has already ended, so that the step does not run
     */
    @Nullable
    Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable;

    /** Returns how many nanoseconds ago the first frame of this call arrived. */
    long ageNanos();
}
