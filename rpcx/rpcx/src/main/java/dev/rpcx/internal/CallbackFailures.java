package dev.rpcx.internal;

import java.time.InstantSource;

/** Logs exceptions that callbacks of users throw. Such an exception changes nothing for the user's call. */
public final class CallbackFailures {
    /**
     * Log with at most one warning a minute, since a peer may make the same callback fail again and again by what it
     * sends.
     */
    public static final RateLimitedLog LOG =
            new RateLimitedLog(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    public static void log(Throwable thrown) {
        LOG.log("a callback has failed, which changes nothing for its call", thrown);
    }
}
