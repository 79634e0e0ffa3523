package dev.rpcx.internal.call;

import org.jspecify.annotations.Nullable;

/** A stream that a server sends, or a subscription to it, that is notified when the server itself ends the stream. */
public interface StreamEndListener {
    /**
     * Notifies this object that the server ends the stream.
     *
     * @param why failure that ends the stream; null if nobody waits for the stream any more
     */
    void ended(@Nullable Throwable why);

    /**
     * Notifies a stream or subscription that the server ends the stream, if the object is a {@code StreamEndListener}.
     * Used for a stream that is never subscribed to, and for a subscription that is about to be cancelled.
     */
    static void ended(Object streamOrSubscription, @Nullable Throwable why) {
        if (streamOrSubscription instanceof StreamEndListener listener) {
            listener.ended(why);
        }
    }
}
