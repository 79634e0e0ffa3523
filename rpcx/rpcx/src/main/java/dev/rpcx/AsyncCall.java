package dev.rpcx;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/** Whoever waits for a call without blocking. Told on the event loop, once the slot is free. */
abstract class AsyncCall {
    final ClientMethod method;

    /** As in the slot that it was sent with, which may be another call's by now: what was left of its time. */
    private long givenNanos;

    /** The same: that use of the slot. */
    private long serial;

    AsyncCall(ClientMethod method) {
        this.method = method;
    }

    final void sentWith(ClientCall slot) {
        givenNanos = slot.givenNanos;
        serial = slot.serial;
    }

    /** What the end of this call says of the instance that had it; {@code error} is null for success. */
    final Health.Outcome outcome(@Nullable RPCXException error, long deadlineNanos) {
        return method.outcome(error, givenNanos, deadlineNanos, serial);
    }

    @Nullable
    Object decode(ByteBuf reply) {
        return method.decode(reply);
    }

    /** Where items of a stream go; null for a call that brings none. */
    @Nullable
    StreamReceiver receiver() {
        return null;
    }

    /** An item of the stream is there. */
    void arrived() {}

    /**
     * Ends it, once. What the user's code throws when it is told is not the connection's affair, whose other calls go
     * on.
     */
    final void end(@Nullable Object value, @Nullable RPCXException error) {
        try {
            if (error == null) {
                succeed(value);
            } else {
                fail(error);
            }
        } catch (Throwable e) {
            told(e);
        }
    }

    /** The user's code, told of the end of a call, has thrown this. */
    static void told(Throwable thrown) {
        try {
            System.getLogger(AsyncCall.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "a callback has failed, which changes nothing for its call",
                            thrown);
        } catch (Throwable e) {
            // what cannot be logged, as its text throws too, is no other call's affair either
            Threads.report(e);
        }
    }

    abstract void succeed(@Nullable Object value);

    abstract void fail(RPCXException error);
}
