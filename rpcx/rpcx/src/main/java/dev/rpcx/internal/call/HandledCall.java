package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/**
 * Call that a server handles, in the form in which the chain of interceptors uses it. Only the server implements this
 * interface.
 */
public interface HandledCall {
    /**
     * Runs the next step in the chain of the call, and returns its result. While the step runs,
     * {@link CallContext#current} is the context of this call. This method sets it, since an interceptor may have gone
     * on to a thread with no context, or with the context of another call. If the calling thread is an event loop and
     * the method's handlers do not run on it, the step runs where the handlers run, and this method returns a stage of
     * the result.
     *
     * @throws RPCXException if the call has ended, so that nothing of its chain begins any more
     */
    @Nullable
    Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable;

    /** Returns the time in nanoseconds since the call's first frame arrived. */
    long ageNanos();
}
