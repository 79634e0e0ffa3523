package dev.rpcx.internal.call;

import dev.rpcx.internal.io.LoopThread;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Future that a client's proxy returns for an asynchronous call. It knows the handled call for which its own call was
 * made: when the handled call is given up, this future is cancelled, unless somebody else waits for it. A cancel of
 * this future reaches its own call.
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
     * Context of the handled call for which this future's call was made; null if there is none, once this future has
     * ended, and once it has been handed out elsewhere.
     */
    private volatile @Nullable TimedContext parent;

    /** Bit of {@link #own}: a proxy has handed this future out. */
    private static final int HANDED_OUT = 1 << 31;

    /** Number of dependents that belong to this library or to interceptors, with the bit {@link #HANDED_OUT}. */
    private volatile int own;

    /** Creates the future of a call that is made on this thread. */
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
     * Called when a proxy hands this future out. Dependents that it has at the first time belong to the interceptors of
     * its client, since its caller has not had it yet. They do not hinder anybody from giving the call up. An
     * interceptor may return the same future again: dependents that it has by then may belong to the caller who had it
     * first, and are not counted. A future that is handed out elsewhere than within the call that it was made for
     * belongs to no call from then on.
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
     * Says whether this future's call was made for {@code call}, this future has not ended, and nobody else waits for
     * it: neither a dependent nor a thread.
     */
    public boolean isOnlyFor(TimedContext call) {
        return parent == call.whole() && !isDone() && getNumberOfDependents() <= (own & ~HANDED_OUT);
    }

    /**
     * Completes this future with the result of its call. From here on it holds nothing of its call, of the connection,
     * or of the call for which it was made. Dependents may run on this thread, an event loop.
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
     * Completes this future with the failure of its call. As with a result, it holds nothing of the call from here on.
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
     * Makes this future hold nothing of its call. Called when the call is over, or when its caller has ended this
     * future and no attempt of the call is under way or to come. Not every write needs a fence of its own: the end is
     * told after the writes, so whoever sees the end sees all of them.
     */
    public void releaseReferences() {
        if (parent != null) {
            parent = null;
        }
        ON_CANCEL.lazySet(this, null);
    }

    /**
     * Sets what a cancel runs. Called before the call is sent. A cancel that came before finds nothing to run, so the
     * sender looks for a cancel afterwards.
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
