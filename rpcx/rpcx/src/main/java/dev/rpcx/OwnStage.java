package dev.rpcx;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * What the interceptors of one call see of the stage that its handler has returned, or that an interceptor behind them
 * has, where it may work when something is hung on it: what they hang on it is held by this, and not by a stage that
 * others may share, or that never ends. It ends with that stage, or as cancelled when the call has ended before that or
 * is given up. Thread-safe.
 */
final class OwnStage extends BoundFuture<@Nullable Object> implements Runnable {
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
     * Whether the handler's stage has ended, or has taken nobody. This may have ended before, by an interceptor of the
     * call.
     */
    private volatile boolean isBrought;

    OwnStage(CompletionStage<?> source) {
        this(source, null);
    }

    /** @param nullRefused why this fails if the source brings null; null where null can be sent */
    OwnStage(CompletionStage<?> source, @Nullable String nullRefused) {
        this.source = source;
        this.nullRefused = nullRefused;
    }

    /**
     * Waits from here on. A stage may take nobody, such as one whose work cannot be begun: then nothing of this is left
     * there, and nobody is told of it.
     */
    void begin() {
        try {
            waiter.await(source);
        } catch (Throwable t) {
            waiter.leave();
            // it has been brought what was thrown, instead of a stage
            isBrought = true;
            throw t;
        }
    }

    /** The handler's stage is not waited for any more. What has been hung on this is told by {@link #run}. */
    void giveUp() {
        waiter.leave();
    }

    /** Says whether the handler's stage has not ended, and this waits for it. */
    boolean isOpen() {
        return !isBrought;
    }

    /** Tells those who have hung something on this that nobody waits for the handler's stage any more. */
    @Override
    public void run() {
        completeExceptionally(new RPCXException(RPCXException.Code.CANCELLED, "the call is over"));
    }

    /** Passes the cancel of a call on: see {@link Awaited#cancel(HandledContext)}. */
    void cancelSource(HandledContext given) {
        Awaited.cancel(source, waiter, given);
    }

    /** The hook that is on the handler's stage because of this call; null where another call's is there. */
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
