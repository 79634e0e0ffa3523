package dev.rpcx;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * What the interceptors of one call see of the stage that its handler has returned: what they hang on it is held by
 * this, and not by a stage that others may share, or that never ends. It ends with the handler's stage, or as cancelled
 * when the call is given up. Thread-safe.
 */
final class OwnStage extends CompletableFuture<@Nullable Object> implements Runnable {
    private final CompletionStage<?> source;
    private final Stages.Waiter waiter = new Stages.Waiter() {
        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            if (thrown == null) {
                complete(value);
            } else {
                completeExceptionally(thrown);
            }
        }
    };

    OwnStage(CompletionStage<?> source) {
        this.source = source;
    }

    void begin() {
        waiter.await(source);
    }

    /** The handler's stage is not waited for any more. What has been hung on this is told by {@link #run}. */
    void giveUp() {
        waiter.leave();
    }

    /** Tells those who have hung something on this that the call has been given up. */
    @Override
    public void run() {
        completeExceptionally(
                new RPCXException(RPCXException.Code.CANCELLED, "the caller is gone", RPCXException.Executed.EXECUTED));
    }

    /** Passes a cancel on to a call of the handler's own: see {@link Awaited#cancel}. */
    void cancelSource() {
        if (source instanceof RPCXFuture<?> own) {
            own.cancel(true);
        }
    }

    /** The hook that is on the handler's stage because of this call; null where another call's is there. */
    Stages.@Nullable Hook hook() {
        return waiter.hook(source);
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (source instanceof Future<?> future) {
            future.cancel(mayInterruptIfRunning);
        }
        return super.cancel(mayInterruptIfRunning);
    }
}
