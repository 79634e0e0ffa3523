package dev.rpcx.internal;

import java.time.InstantSource;

/** Logs what callbacks of users throw, which changes nothing for their calls. */
public final class CallbackFailures {
    /**
     * Limits the log to one warning a minute, since what a peer sends may make the same callback fail again and again.
     */
    public static final RateLimitedLog LOG =
            new RateLimitedLog(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    public static void log(Throwable thrown) {
        LOG.log("a callback has failed, which changes nothing for its call", thrown);
    }
}
