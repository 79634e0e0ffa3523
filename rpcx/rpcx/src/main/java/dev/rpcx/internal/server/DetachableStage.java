package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.BoundFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Stage that the interceptors of one call see instead of the stage that its handler has returned, or instead of one
 * that a later interceptor has returned and that may do work when a dependent is attached. What interceptors attach is
 * held by this stage, and not by a stage that others may share, or that never ends. This stage ends with the other one,
 * its source, or as cancelled when the call has ended before that or is given up. Thread-safe.
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
     * Whether the source has ended, or could not be waited for. An interceptor of the call may have ended this stage
     * before that.
     */
    private volatile boolean isBrought;

    public DetachableStage(CompletionStage<?> source) {
        this(source, null);
    }

    /** @param nullRefused text with which this stage fails if the source brings null; null where null can be sent */
    public DetachableStage(CompletionStage<?> source, @Nullable String nullRefused) {
        this.source = source;
        this.nullRefused = nullRefused;
    }

    /**
     * Begins to wait for the source. A source may let nobody wait, such as one whose work cannot be started: then
     * nothing of this stage is left there, and nobody is told of it.
     */
    void begin() {
        try {
            waiter.await(source);
        } catch (Throwable t) {
            waiter.leave();
            // the interceptor gets what was thrown, instead of a stage
            isBrought = true;
            throw t;
        }
    }

    /** Stops waiting for the source. What has been attached to this stage is told by {@link #run}. */
    void giveUp() {
        waiter.leave();
    }

    /** Says whether the source has not ended, as far as this stage knows. */
    boolean isOpen() {
        return !isBrought;
    }

    /**
     * Completes this stage, to tell those who have attached something to it that nobody waits for the source any more.
     */
    @Override
    public void run() {
        completeExceptionally(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
    }

    /** Passes the cancel of a call on to the source: see {@link PendingResult#cancel(HandledContext)}. */
    void cancelSource(HandledContext given) {
        PendingResult.cancel(source, waiter, given);
    }

    /** Hook that is on the source because of this call; null where the hook is another call's. */
    Stages.@Nullable Hook hook() {
        return waiter.hook(source);
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (source instanceof Future<?> future) {
            try {
                future.cancel(mayInterruptIfRunning);
            } catch (UnsupportedOperationException minimal) {
                // a stage that can only be waited for goes on, as it does where its caller is gone
            }
        }
        return super.cancel(mayInterruptIfRunning);
    }
}
