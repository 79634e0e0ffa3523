package dev.rpcx.internal.call;

import dev.rpcx.internal.io.LoopThread;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Future that a client's proxy returns for an asynchronous call. If a handler has made that call, the future knows the
 * call that the handler handles. When the handled call is given up, this future is cancelled, unless somebody else
 * waits for it. A cancel of this future also cancels its own call.
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
     * Context of the handled call for which this future's call was made. It is null if there is no handled call, once
     * this future has ended, and once it has been handed out outside of the handled call.
     */
    private volatile @Nullable TimedContext parent;

    /** Bit of {@link #own} that is set once a proxy has handed this future out. */
    private static final int HANDED_OUT = 1 << 31;

    /**
     * Number of dependents that belong to this library or to interceptors, combined with the bit {@link #HANDED_OUT}.
     */
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
     * Called when a proxy hands this future out to a caller. The first time, no caller has had the future before, so
     * its dependents belong to the interceptors of the client. Such dependents do not count as somebody who waits for
     * the future. An interceptor may return the same future again. Dependents that were attached meanwhile may belong
     * to the first caller, so they do not count as dependents of interceptors. If the future is handed out outside of
     * the handled call for which it was made, it belongs to no handled call from then on.
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
     * Says whether all of this holds: this future's call was made for {@code call}, this future has not ended, and
     * nobody else waits for it, neither a dependent nor a thread.
     */
    public boolean isOnlyFor(TimedContext call) {
        return parent == call.whole() && !isDone() && getNumberOfDependents() <= (own & ~HANDED_OUT);
    }

    /**
     * Completes this future with the result of its call. From here on the future has no reference to its call, to the
     * connection, or to the handled call for which it was made. Dependents may run on the calling thread, such as an
     * event loop. Returns false if the future had ended before.
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
     * Completes this future with the failure of its call. From here on the future has no reference to its call, to the
     * connection, or to the handled call for which it was made. Returns false if the future had ended before.
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
     * Removes the references of this future to its call. Called when the call is over, or when its caller has ended
     * this future and no attempt of the call is under way or to come. The method writes two fields. The second write
     * needs no fence: the caller gets the end after both writes, so a thread that sees the end also sees both writes.
     */
    public void releaseReferences() {
        if (parent != null) {
            parent = null;
        }
        ON_CANCEL.lazySet(this, null);
    }

    /**
     * Sets the action that a cancel of this future runs. Called before the call is sent. A cancel that came earlier
     * found no action to run, so the sender checks after this method whether the future has been cancelled.
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
