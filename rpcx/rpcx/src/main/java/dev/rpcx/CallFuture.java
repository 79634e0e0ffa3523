package dev.rpcx;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * What a client's proxy gives for an asynchronous call. It knows the call for which it was made, and that call's end
 * ends it where nobody else waits for it; a cancel of it reaches its own call.
 */
final class CallFuture<T> extends BoundFuture<T> {
    @SuppressWarnings("rawtypes")
    private static final AtomicIntegerFieldUpdater<CallFuture> OWN =
            AtomicIntegerFieldUpdater.newUpdater(CallFuture.class, "own");

    @SuppressWarnings("rawtypes")
    private static final AtomicReferenceFieldUpdater<CallFuture, @Nullable Runnable> ON_CANCEL =
            AtomicReferenceFieldUpdater.newUpdater(CallFuture.class, Runnable.class, "onCancel");

    private volatile @Nullable Runnable onCancel;

    /** The call for which this one was made; null where there is none, and once it has ended. */
    private volatile @Nullable TimedContext maker;

    /** Of {@link #own}: a proxy has handed this out. */
    private static final int HANDED_OUT = 1 << 31;

    /** Dependents that are this library's own, or its interceptors'; and {@link #HANDED_OUT}. */
    private volatile int own;

    /** For a call that is made here. */
    CallFuture() {
        TimedContext here = CurrentCall.get();
        if (here != null) {
            maker = here.whole();
        }
    }

    @Override
    void onEnd(BiConsumer<? super T, ? super Throwable> action) {
        OWN.incrementAndGet(this);
        super.onEnd(action);
    }

    /**
     * A proxy hands this out. What hangs on it when that happens first is its client's: of the call's interceptors,
     * before its caller has it. That hinders nobody from giving the call up. An interceptor may return the same future
     * again: what hangs on it by then may be that of its first receiver, and one that goes to another call than that
     * which it was made for is nobody's from then on.
     */
    void handedOut() {
        TimedContext made = maker;
        TimedContext here = CurrentCall.get();
        if (made != null && (here == null || here.whole() != made)) {
            maker = null;
        }
        int before = own;
        while ((before & HANDED_OUT) == 0
                && !OWN.compareAndSet(this, before, Math.max(before, getNumberOfDependents()) | HANDED_OUT)) {
            before = own;
        }
    }

    /**
     * Says whether the call has been made for this one and is under way, and nothing of others hangs on it: no
     * dependent, and no thread that waits.
     */
    boolean isOnlyFor(TimedContext call) {
        return maker == call.whole() && !isDone() && getNumberOfDependents() <= (own & ~HANDED_OUT);
    }

    /**
     * The call has brought its result: this holds nothing any more of it, of its connection, or of the call for which
     * it was made. Whoever waits for it may run here, on an event loop.
     */
    boolean bring(@Nullable T value) {
        letGo();
        try {
            return complete(value);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /** The same for a call that has failed. */
    boolean fail(Throwable thrown) {
        letGo();
        try {
            return completeExceptionally(thrown);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * The call is over, or its caller has ended this and nothing of the call is under way or to come: this holds
     * nothing of it. Without a fence of its own for each: all of it is seen by whoever sees the end, which is told
     * behind it.
     */
    void letGo() {
        if (maker != null) {
            maker = null;
        }
        ON_CANCEL.lazySet(this, null);
    }

    /**
     * Called before the call is sent: a cancel that came first finds nothing to stop, and the caller looks for it
     * afterwards.
     */
    void onCancel(Runnable action) {
        onCancel = action;
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        maker = null;
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        Runnable action = onCancel;
        if (cancelled && action != null) {
            action.run();
            onCancel = null;
        }
        return cancelled;
    }
}
