package dev.rpcx.internal.call;

import dev.rpcx.CallContext;
import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/** Call that a server handles, as the chain of its interceptors sees it. Only the server implements this interface. */
public interface HandledCall {
    /**
     * Goes one step further in the chain of the call. {@link CallContext#current} is set to the context of the call
     * while the step runs, since an interceptor may have gone on to a thread that has no call's context, or another
     * call's. On an event loop where the method's handlers do not run, the step runs elsewhere, and this method returns
     * a stage.
     *
     * @throws RPCXException if the call has ended, so that nothing of its chain begins any more
     */
    @Nullable
    Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable;

    /** Time in nanoseconds since the call's first frame arrived. */
    long ageNanos();
}
