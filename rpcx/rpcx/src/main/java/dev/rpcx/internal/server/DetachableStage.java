package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.BoundFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Stage that the interceptors of one call see instead of its source: the stage that the handler, or a later
 * interceptor, has returned. This stage ends when its source does. If the call ends or is given up earlier, this stage
 * ends as cancelled. Thread-safe.
 *
 * <p>Interceptors attach their dependents here and not to the source, since the source may never end, or may be shared
 * with other calls.
 */
public final class DetachableStage extends BoundFuture<@Nullable Object> implements Runnable {
    private final CompletionStage<?> source;
    private final @Nullable String nullRefused;
    private final Stages.Waiter waiter = new Stages.Waiter() {
        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            isBrought = true;
            if (thrown != null) {
                completeExceptionally(thrown);
            } else if (value == null && nullRefused != null) {
                completeExceptionally(new IllegalStateException(nullRefused));
            } else {
                complete(value);
            }
        }
    };

    /**
     * Whether the source has ended, or could not be waited for. This stage may have ended earlier, if an interceptor
     * has completed it.
     */
    private volatile boolean isBrought;

    public DetachableStage(CompletionStage<?> source) {
        this(source, null);
    }

    /**
     * Creates a stage that does not wait for its source yet.
     *
     * @param nullRefused text of the exception with which this stage fails if the source's result is null; null if the
     *     result may be null
     */
    public DetachableStage(CompletionStage<?> source, @Nullable String nullRefused) {
        this.source = source;
        this.nullRefused = nullRefused;
    }

    /**
     * Starts waiting for the source. If the source throws, this method throws the same exception, and does not complete
     * this stage.
     */
    void begin() {
        try {
            waiter.await(source);
        } catch (Throwable t) {
            waiter.leave();
            // the interceptor gets the exception instead of this stage
            isBrought = true;
            throw t;
        }
    }

    /** Stops waiting for the source. Afterwards {@link #run} has to be called, to end this stage. */
    void giveUp() {
        waiter.leave();
    }

    /** Returns whether the source has not ended yet, as far as this stage knows. */
    boolean isOpen() {
        return !isBrought;
    }

    /** Ends this stage as cancelled, because nobody waits for the source any more. */
    @Override
    public void run() {
        completeExceptionally(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
    }

    /**
     * Passes the cancel of a call on to the source, as {@link PendingResult#cancel(HandledContext)} describes.
     *
     * @param given context of the call that is cancelled
     */
    void cancelSource(HandledContext given) {
        PendingResult.cancel(source, waiter, given);
    }

    /**
     * Returns the {@link Stages.Hook} that was attached to the source for this call. Null if there is no such hook, for
     * example because the source already had the hook of another call.
     */
    Stages.@Nullable Hook hook() {
        return waiter.hook(source);
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (source instanceof Future<?> future) {
            try {
                future.cancel(mayInterruptIfRunning);
            } catch (UnsupportedOperationException minimal) {
                // the source does not support cancelling, so the source goes on
            }
        }
        return super.cancel(mayInterruptIfRunning);
    }
}
