package dev.rpcx;

import org.jspecify.annotations.Nullable;

/** A server's stream, or its subscription to it, whose end may come from the server itself. */
interface WatchedStream {
    /** @param why what its caller is told; null where nobody waits for it any more */
    void ended(@Nullable Throwable why);

    /** Tells a stream that is never subscribed to, or a subscription before it is cancelled, how it has ended. */
    static void ended(Object streamOrSubscription, @Nullable Throwable why) {
        if (streamOrSubscription instanceof WatchedStream watched) {
            watched.ended(why);
        }
    }
}
