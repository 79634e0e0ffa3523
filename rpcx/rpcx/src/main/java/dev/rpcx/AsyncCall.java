package dev.rpcx;

import org.jspecify.annotations.Nullable;

/** Whoever waits for a call without blocking. On the event loop; the slot is free already. */
abstract class AsyncCall {
    final ClientMethod method;

    AsyncCall(ClientMethod method) {
        this.method = method;
    }

    abstract void succeed(@Nullable Object value);

    abstract void fail(RPCXException error);
}
