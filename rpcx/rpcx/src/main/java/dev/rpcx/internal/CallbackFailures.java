package dev.rpcx.internal;

import java.time.InstantSource;

/** Logs exceptions that users' callbacks throw, if such an exception does not change the outcome of the call. */
public final class CallbackFailures {
    /** Log of these exceptions, limited to one warning a minute, because a peer can make a callback fail often. */
    public static final RateLimitedLog LOG =
            new RateLimitedLog(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    public static void log(Throwable thrown) {
        LOG.log("a callback has failed, which changes nothing for its call", thrown);
    }
}
