package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.BoundFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Stage that the interceptors of one call see in place of the one that the handler or a later interceptor has returned.
 * The returned stage is called the source. This stage ends when the source ends. If the call ends or is given up before
 * that, this stage ends as cancelled. Thread-safe.
 *
 * <p>Interceptors attach their callbacks here and not to the source, because the source may never end, and other calls
 * may share it.
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
     * Whether the source has ended, or waiting for it has failed. An interceptor may have completed this stage earlier.
     */
    private volatile boolean isBrought;

    public DetachableStage(CompletionStage<?> source) {
        this(source, null);
    }

    /**
     * Creates a stage that starts to wait for its source when {@link #begin} is called.
     *
     * @param source stage that the handler or a later interceptor has returned
     * @param nullRefused message of the exception with which this stage fails if the source's result is null; null if
     *     the result may be null
     */
    public DetachableStage(CompletionStage<?> source, @Nullable String nullRefused) {
        this.source = source;
        this.nullRefused = nullRefused;
    }

    /**
     * Starts to wait for the source. If the source throws when a callback is attached to it, this method throws the
     * same exception and leaves this stage uncompleted.
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

    /** Stops waiting for the source. The caller has to call {@link #run} afterwards, which ends this stage. */
    void giveUp() {
        waiter.leave();
    }

    /** Returns whether this stage has not seen its source end yet. */
    boolean isOpen() {
        return !isBrought;
    }

    /** Ends this stage with the error CANCELLED. Called when the call does not wait for the source any more. */
    @Override
    public void run() {
        completeExceptionally(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
    }

    /**
     * Cancels the source if it is the future of an RPC that the handler has made. Does nothing if another call waits
     * for the source too. See {@link PendingResult#cancel(HandledContext)}.
     *
     * @param given context of the handler's own call, which is being cancelled
     */
    void cancelSource(HandledContext given) {
        PendingResult.cancel(source, waiter, given);
    }

    /**
     * Returns the callback that was attached to the source for this call, a {@link Stages.Hook}. Returns null if there
     * is none, for example because the callback of another call was there already.
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
