package dev.rpcx.internal.call;

import dev.rpcx.internal.io.LoopThread;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The future of an asynchronous call that a client makes. Cancelling the future cancels the call. If a server's handler
 * has made the call and returns this future, the server cancels the future when the handled call is cancelled, unless
 * somebody else needs the future too: see {@link #isOnlyFor}.
 */
public final class CallFuture<T> extends BoundFuture<T> {
    @SuppressWarnings("rawtypes")
    private static final AtomicIntegerFieldUpdater<CallFuture> OWN =
            AtomicIntegerFieldUpdater.newUpdater(CallFuture.class, "own");

    @SuppressWarnings("rawtypes")
    private static final AtomicReferenceFieldUpdater<CallFuture, @Nullable Runnable> ON_CANCEL =
            AtomicReferenceFieldUpdater.newUpdater(CallFuture.class, Runnable.class, "onCancel");

    /**
     * The action that runs when this future is cancelled; null for none. The thread that sends an attempt stores the
     * action, sends the attempt, and then checks whether this future is cancelled. A thread that cancels this future
     * ends it first, and then reads the action. So at least one of the two threads cancels the attempt. In another
     * order, the call could go on although its caller has cancelled it. A thread that ends the call clears the field.
     */
    private volatile @Nullable Runnable onCancel;

    /**
     * Context in which the call of this future was made; null if there was none. If a handler made the call, this is
     * the context of the handled call. Outside of any handled call, it is the outermost context that
     * {@code CallContext.within} has created.
     *
     * <p>{@link #releaseReferences} and {@link #cancel} set this field to null. {@link #handedOut} sets it to null if a
     * proxy returns this future to a caller outside of this context. That is possible if an interceptor returns one
     * future to several callers.
     *
     * <p>The thread that makes the call stores the context. Any thread can clear this field. At a server, a thread that
     * cancels the handled call reads this field.
     */
    private volatile @Nullable TimedContext parent;

    /** The bit of {@link #own} that {@link #handedOut} sets. */
    private static final int HANDED_OUT = 1 << 31;

    /**
     * Two values in one field. The lower 31 bits are the number of this future's dependents that RPCX has attached, or
     * that interceptors have attached before {@link #handedOut}. {@link #isOnlyFor} assumes that callers have attached
     * all other dependents. The highest bit is {@link #HANDED_OUT}.
     *
     * <p>Any thread can change the field. {@link #onEnd} raises the number before it attaches its dependent. In the
     * other order, {@code isOnlyFor} on another thread could assume that a caller has attached this dependent.
     */
    private volatile int own;

    /** Creates the future of a call that the calling thread makes. */
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
     * Records that a proxy is returning this future to a caller. {@link #isOnlyFor} does not count the dependents that
     * this future has when this method is first called, since they belong to RPCX or to interceptors. It counts later
     * dependents, because the caller may have attached them. It never counts dependents that {@link #onEnd} attaches.
     *
     * <p>If a handler made the call of this future, this future belongs to the handled call, until this method is
     * called on a thread that is not in the context of the handled call.
     *
     * <p>A proxy of the native wire without interceptors does not call this method, because no interceptor can have
     * attached a dependent.
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
     * Returns whether only the handled call with the context {@code call} needs this future. Returns false if this
     * future has ended or does not belong to this handled call. Also returns false if a thread waits for this future,
     * or if the caller of the proxy may have attached a dependent. This method does not notice that another handled
     * call has returned this future too. Therefore {@code Stages.hasOthers} has to be checked as well.
     */
    public boolean isOnlyFor(TimedContext call) {
        return parent == call.whole() && !isDone() && getNumberOfDependents() <= (own & ~HANDED_OUT);
    }

    /**
     * Calls {@link #releaseReferences}, then completes this future with the result of its call. Dependents can run on
     * the calling thread, which can be an event loop. Returns false if this future had already ended.
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
     * Calls {@link #releaseReferences}, then completes this future with the failure of its call. Returns false if this
     * future had already ended.
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
     * Removes the references to the call, the connection and the handled call, so that these objects can be
     * garbage-collected. RPCX calls this method when no attempt of the call is in progress and none follows. If this
     * future has not ended yet, RPCX completes the future next. The completion makes the cleared {@code onCancel}
     * visible to other threads, so a {@code lazySet} is enough to clear it.
     */
    public void releaseReferences() {
        if (parent != null) {
            parent = null;
        }
        ON_CANCEL.lazySet(this, null);
    }

    /**
     * Sets the action that runs when this future is cancelled. The sender sets the action before it sends the call.
     * Afterwards the sender has to check whether this future is already cancelled, because the action does not run for
     * an earlier cancel.
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
