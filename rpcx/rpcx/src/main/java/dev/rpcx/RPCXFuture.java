package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
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

    /**
     * Blocks until the call is over. Event loops end calls whose time is over; should this one's not, since it is held
     * up, the caller gives the call up a while later.
     */
    T await(long deadlineNanos, Ticker ticker) {
        try {
            long left = deadlineNanos - ticker.nanoTime() + ClientCall.MARGIN_NANOS;
            return get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RPCXException known ? known : new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            cancel(true);
            throw ClientCall.withoutAWord();
        } catch (InterruptedException e) {
            cancel(true);
            Thread.currentThread().interrupt();
            throw new RPCXException(
                    RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.MAYBE);
        }
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new CompletableFuture<>();
    }
}
