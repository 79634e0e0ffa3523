package dev.rpcx;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The result of an asynchronous call: what a client's method gets when it is declared to return {@code CompletionStage},
 * {@code CompletableFuture} or {@code RPCXFuture}. Ends with the result or an {@link RPCXException}. It is completed on the
 * connection's event loop: what depends on it and blocks or takes long belongs behind one of the {@code …Async} methods.
 * {@link #cancel} reaches the server.
 */
public final class RPCXFuture<T> extends CompletableFuture<T> {
    private volatile @Nullable Runnable onCancel;

    RPCXFuture() {}

    /** Called before the call is sent: a cancel that came first finds nothing to stop, and the caller looks for it afterwards. */
    void onCancel(Runnable action) {
        onCancel = action;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Runnable action = onCancel;
        if (cancelled && action != null) {
            action.run();
        }
        return cancelled;
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new CompletableFuture<>();
    }
}
