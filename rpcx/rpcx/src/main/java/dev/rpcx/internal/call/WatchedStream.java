package dev.rpcx.internal.call;

import org.jspecify.annotations.Nullable;

/** Stream that a server sends, or a subscription to it, that is notified when the server itself ends the stream. */
public interface WatchedStream {
    /**
     * Called when the server ends the stream.
     *
     * @param why failure that ends the stream; null if nobody waits for the stream any more
     */
    void ended(@Nullable Throwable why);

    /**
     * Calls {@code ended} of a stream that is never subscribed to, or of a subscription before it is cancelled. Does
     * nothing for any other object.
     */
    static void ended(Object streamOrSubscription, @Nullable Throwable why) {
        if (streamOrSubscription instanceof WatchedStream watched) {
            watched.ended(why);
        }
    }
}
