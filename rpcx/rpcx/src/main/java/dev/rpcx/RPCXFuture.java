package dev.rpcx;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The result of an asynchronous call: what a client's method gets when it is declared to return {@code CompletionStage},
 * {@code CompletableFuture} or {@code RPCXFuture}. Ends with the result or an {@link RPCXException}. It is completed on the
 * connection's event loop: what depends on it and blocks or takes long belongs behind one of the {@code …Async} methods.
 * To wait there for another future, such as by {@code CompletableFuture.allOf(…).join()}, blocks the loop, and
 * nothing
 * refuses it where that future is none of RPCX's. {@link #cancel} reaches the server. Where the caller ends this in
 * another way, such as by {@link #orTimeout}, a call that waits for a connection is not made, and one that is under way
 * goes on at its server, unless it has {@link Method#hedgeMillis}: that is cancelled.
 *
 * <p>The arguments are read within the call of the method, and once more where it is made again before this future has
 * ended, as {@link Method#idempotent} and {@link Method#hedgeMillis} say. Who changes them meanwhile changes what is
 * sent then; what they become afterwards is never sent.
 *
 * <p>What depends on it, or on a future that its methods give, runs in the {@link CallContext} that was current where
 * it was attached: calls that it makes have that call's time, and {@link Tokens#forwarding} signs them for its caller.
 * Not so what depends on {@link #minimalCompletionStage}, which the JDK makes.
 *
 * <p>Where a handler returns one, and its own caller gives up, the future is cancelled if its call was made for that caller, and nobody
 * else waits for it: no other call, no dependent, no thread. One that is kept for the callers to come has to be made for nobody, or
 * returned as {@link #copy}.
 */
public final class RPCXFuture<T> extends BoundFuture<T> {
    @SuppressWarnings("rawtypes")
    private static final AtomicIntegerFieldUpdater<RPCXFuture> OWN =
            AtomicIntegerFieldUpdater.newUpdater(RPCXFuture.class, "own");

    @SuppressWarnings("rawtypes")
    private static final AtomicReferenceFieldUpdater<RPCXFuture, @Nullable Runnable> ON_CANCEL =
            AtomicReferenceFieldUpdater.newUpdater(RPCXFuture.class, Runnable.class, "onCancel");

    private volatile @Nullable Runnable onCancel;

    /** The call for which this one was made; null where there is none, and once it has ended. */
    private volatile @Nullable CallContext maker;

    /** Of {@link #own}: a proxy has handed this out. */
    private static final int HANDED_OUT = 1 << 31;

    /** Dependents that are this library's own, or its interceptors'; and {@link #HANDED_OUT}. */
    private volatile int own;

    /** For a call that is made here. */
    RPCXFuture() {
        CallContext here = CallContext.here();
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
        CallContext made = maker;
        CallContext here = CallContext.here();
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
     * Says whether the call has been made for this one and is under way, and nothing of others hangs on it: no dependent,
     * and no thread that waits.
     */
    boolean isOnlyFor(CallContext call) {
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

    /** Called before the call is sent: a cancel that came first finds nothing to stop, and the caller looks for it afterwards. */
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
