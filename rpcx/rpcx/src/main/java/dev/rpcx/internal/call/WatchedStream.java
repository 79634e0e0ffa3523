package dev.rpcx.internal.call;

import org.jspecify.annotations.Nullable;

/** Stream of a server, or subscription to one, that is told its end where that comes from the server itself. */
public interface WatchedStream {
    /** @param why failure that ends the stream; null if nobody waits for the stream any more */
    void ended(@Nullable Throwable why);

    /** Tells a stream that is never subscribed to, or a subscription before it is cancelled, how it has ended. */
    static void ended(Object streamOrSubscription, @Nullable Throwable why) {
        if (streamOrSubscription instanceof WatchedStream watched) {
            watched.ended(why);
        }
    }
}
