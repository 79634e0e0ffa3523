package dev.rpcx.internal;

import java.time.InstantSource;

/** Logs exceptions thrown by users' callbacks. Such an exception does not affect the call. */
public final class CallbackFailures {
    /** Logs at most one warning a minute, since a peer may make the same callback fail again and again. */
    public static final RateLimitedLog LOG =
            new RateLimitedLog(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    public static void log(Throwable thrown) {
        LOG.log("a callback has failed, which changes nothing for its call", thrown);
    }
}
