package dev.rpcx.internal.call;

import dev.rpcx.internal.io.LoopThread;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Future of an asynchronous call of a client. Cancelling it cancels the call. If a handler made the call, this future
 * is cancelled when the handled call is given up, unless somebody else waits for it.
 */
public final class CallFuture<T> extends BoundFuture<T> {
    @SuppressWarnings("rawtypes")
    private static final AtomicIntegerFieldUpdater<CallFuture> OWN =
            AtomicIntegerFieldUpdater.newUpdater(CallFuture.class, "own");

    @SuppressWarnings("rawtypes")
    private static final AtomicReferenceFieldUpdater<CallFuture, @Nullable Runnable> ON_CANCEL =
            AtomicReferenceFieldUpdater.newUpdater(CallFuture.class, Runnable.class, "onCancel");

    private volatile @Nullable Runnable onCancel;

    /**
     * Context of the handled call whose handler made this future's call. Null if there is none, if this future has
     * ended, or if this future was handed out outside of the handled call.
     */
    private volatile @Nullable TimedContext parent;

    /** Bit of {@link #own} that is set once a proxy has handed this future out. */
    private static final int HANDED_OUT = 1 << 31;

    /** Number of dependents of this library or of interceptors, combined with the bit {@link #HANDED_OUT}. */
    private volatile int own;

    /** Creates the future of a call that is made on the calling thread. */
    public CallFuture() {
        TimedContext here = CurrentCall.get();
        if (here != null) {
            parent = here.whole();
        }
    }

    @Override
    public void onEnd(BiConsumer<? super T, ? super Throwable> action) {
        OWN.incrementAndGet(this);
        super.onEnd(action);
    }

    /**
     * Called when a proxy returns this future to a caller. The first time, all its dependents are those of
     * interceptors, which do not count as somebody who waits. Dependents that are attached later, except by
     * {@link #onEnd}, may be the caller's, so they count, even if an interceptor returns the same future again. A
     * future that is handed out outside of its handled call no longer belongs to that call.
     */
    public void handedOut() {
        TimedContext made = parent;
        TimedContext here = CurrentCall.get();
        if (made != null && (here == null || here.whole() != made)) {
            parent = null;
        }
        int before = own;
        while ((before & HANDED_OUT) == 0
                && !OWN.compareAndSet(this, before, Math.max(before, getNumberOfDependents()) | HANDED_OUT)) {
            before = own;
        }
    }

    /**
     * Returns whether this future's call was made for {@code call}, this future has not ended, and nobody else waits
     * for it, neither a dependent nor a thread.
     */
    public boolean isOnlyFor(TimedContext call) {
        return parent == call.whole() && !isDone() && getNumberOfDependents() <= (own & ~HANDED_OUT);
    }

    /**
     * Calls {@link #releaseReferences}, then completes this future with the result of its call. Dependents may run on
     * the calling thread, such as an event loop. Returns false if the future had ended before.
     */
    public boolean succeed(@Nullable T value) {
        releaseReferences();
        try {
            return complete(value);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Calls {@link #releaseReferences}, then completes this future with the failure of its call. Returns false if the
     * future had ended before.
     */
    public boolean fail(Throwable thrown) {
        releaseReferences();
        try {
            return completeExceptionally(thrown);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Removes the references to the call, the connection and the handled call, so that they can be collected. Called
     * when the call is over, or when its caller has ended this future and no attempt is under way or to come. The
     * second write needs no fence: if the call is over, completing the future afterwards publishes both writes.
     */
    public void releaseReferences() {
        if (parent != null) {
            parent = null;
        }
        ON_CANCEL.lazySet(this, null);
    }

    /**
     * Sets the action that a cancel of this future runs. Called before the call is sent. An earlier cancel runs no
     * action, so the sender checks afterwards whether the future has been cancelled.
     */
    public void onCancel(Runnable action) {
        onCancel = action;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        parent = null;
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Runnable action = onCancel;
        if (cancelled && action != null) {
            action.run();
            onCancel = null;
        }
        return cancelled;
    }
}
