package dev.rpcx;

import org.jspecify.annotations.Nullable;

/** A call that a server handles, as its interceptors go through it. The server alone implements it. */
interface HandledCall {
    /**
     * Goes one step further in the chain of the call, where {@link CallContext#current} is that call: an interceptor
     * may have gone on to a thread that knows of no call, or of another one. On an event loop where the method's
     * handlers do not run it goes on elsewhere, and this gives a stage.
     *
     * @throws RPCXException the call has ended, and nothing of its chain begins any more
     */
    @Nullable
    Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable;

    /** How long ago the call's first frame was there. */
    long ageNanos();
}
