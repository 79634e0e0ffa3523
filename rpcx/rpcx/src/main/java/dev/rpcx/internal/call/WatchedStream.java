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
     * Calls {@code ended} if the object is a {@code WatchedStream}. Used for a stream that is never subscribed to, and
     * for a subscription that is about to be cancelled.
     */
    static void ended(Object streamOrSubscription, @Nullable Throwable why) {
        if (streamOrSubscription instanceof WatchedStream watched) {
            watched.ended(why);
        }
    }
}
