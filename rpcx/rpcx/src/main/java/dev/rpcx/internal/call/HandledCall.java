package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/** A call that a server handles, as the chain of interceptors sees it. Only the server implements this interface. */
public interface HandledCall {
    /**
     * Runs the next step of the chain in the context of this call, and returns its result. The calling thread may have
     * no context or that of another call. If the calling thread is an event loop and the method's handlers do not run
     * on it, the step runs where the handlers run, and this method returns a stage of the result.
     *
     * @throws RPCXException if the call has ended, so that no step begins any more
     */
    @Nullable
    Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable;

    /** Returns the time in nanoseconds since the call's first frame arrived. */
    long ageNanos();
}
