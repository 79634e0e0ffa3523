package dev.rpcx.internal.server;

import dev.rpcx.internal.call.BoundFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Stage that the interceptors of one call see instead of a stage that the handler or a later interceptor has returned.
 * The returned stage is called the source. This stage ends when the source ends. If the call ends or is given up
 * earlier, this stage fails with the error CANCELLED. Thread-safe.
 *
 * <p>Interceptors attach their callbacks to this stage and not to the source, because the source may never end, and
 * other calls may share the source.
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
     * Whether the source has brought its result, or attaching a callback to the source has failed. The source is the
     * stage that this one replaces. This stage itself may have ended before the source, since an interceptor can
     * complete it.
     *
     * <p>The thread that forwards the result of the source sets this field before it completes this stage. The end of
     * this stage can end the call, and the thread that ends the call then reads this field.
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
     * Starts to wait for the source. If the source throws an exception when a callback is attached, this method throws
     * the same exception and leaves this stage uncompleted.
     */
    void begin() {
        try {
            waiter.await(source);
        } catch (Throwable t) {
            waiter.stopWaiting();
            // the interceptor gets the exception and never sees this stage, so nothing has to end this stage
            isBrought = true;
            throw t;
        }
    }

    /**
     * Stops waiting for the stage that this one stands for, but does not end this stage. The caller has to end this
     * stage afterwards, by {@link #run}.
     */
    void giveUp() {
        waiter.stopWaiting();
    }

    /** Returns true until this stage learns that its source has ended. */
    boolean isOpen() {
        return !isBrought;
    }

    /**
     * Ends this stage with the error CANCELLED. Called when the call no longer waits for the source, that is, for the
     * stage that this one replaces.
     */
    @Override
    public void run() {
        completeExceptionally(ServerCallErrors.over());
    }

    /**
     * Cancels the source if the source is the future of an RPC that the handler has made, and no other call waits for
     * that future. See {@link PendingResult#cancel(HandledContext)}.
     *
     * @param given context of the handler's own call, which is being cancelled
     */
    void cancelSource(HandledContext given) {
        PendingResult.cancel(source, waiter, given);
    }

    /**
     * Returns the {@link Stages.Hook}, RPCX's callback, that is attached to the source for this call. Returns null if
     * none is attached for this call. For example, if RPCX has already attached a callback for another call, that
     * callback serves both calls. If this stage stopped waiting early, this method may attach the callback: see
     * {@link Stages.Waiter#hook}.
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
                // the source does not support a cancel, so only this stage is cancelled
            }
        }
        return super.cancel(mayInterruptIfRunning);
    }
}
