package dev.rpcx.internal;

import java.time.InstantSource;

/**
 * Logs exceptions that users' callbacks throw, if such an exception does not change the outcome of the call. Also logs
 * items of a publisher that come too late to change it.
 */
public final class CallbackFailures {
    /** Log of these failures, limited to one warning a minute, because a peer can make a callback fail often. */
    public static final RateLimitedLog LOG =
            new RateLimitedLog(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    public static void log(Throwable thrown) {
        LOG.log("a callback has failed, which changes nothing for its call", thrown);
    }

    /** Logs that the publisher of a stream has made an item after the end of the stream. Nobody gets such an item. */
    public static void logLateItem() {
        LOG.log(
                "a publisher has made an item after its onComplete, which nobody gets (expected: onComplete once, after"
                        + " the last item)",
                null);
    }
}
