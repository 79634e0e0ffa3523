package dev.rpcx;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/** Whoever waits for a call without blocking. Told on the event loop, once the slot is free. */
abstract class AsyncCall {
    final ClientMethod method;

    AsyncCall(ClientMethod method) {
        this.method = method;
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

    abstract void succeed(@Nullable Object value);

    abstract void fail(RPCXException error);
}
