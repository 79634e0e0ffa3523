package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.StreamSender;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * A call whose caller has a future. Also makes one-way calls, and the two calls of a {@link Hedge}.
 *
 * <p>The call begins on its caller's thread, and the second call of a hedge on an event loop. An event loop makes
 * further attempts and completes the future. A call that waits blocks no thread: a callback continues it.
 */
public final class FutureCall extends AsyncCall implements Runnable {
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> future = new CallFuture<>();

    /**
     * Future that the caller has. It is {@code future}, or the future of the hedge if this is one of the hedge's two
     * calls.
     */
    private final CompletableFuture<?> whole;

    /**
     * Attempts that have failed, and the instance that the next attempt avoids; null if there is neither. Set before an
     * attempt is sent. Read when that attempt has ended, and by the thread that makes the next attempt.
     */
    private @Nullable Attempts earlier;

    /**
     * The arguments as they were when the call was made, encoded. Kept while the call waits for its first connection,
     * and for further attempts of a one-way call, unless the slot has them. Null for any other attempt, which encodes
     * the arguments itself.
     */
    private @Nullable ByteBuf encoded;

    /** Charge for {@link #encoded}; null if that is null. */
    private Route.@Nullable WaitingBytes held;

    private int key;
    private long permit = CircuitBreaker.PERMITTED;

    /** Error that says why the arguments could not be kept for the next attempt; null if there is no such error. */
    private @Nullable RPCXException unkept;

    /** Whether {@link #awaitOnClose} has been called. Written before the call is sent, or when its attempt ends. */
    private boolean isWaitedFor;

    private static final AtomicReferenceFieldUpdater<FutureCall, @Nullable ClientCall> SLOT =
            AtomicReferenceFieldUpdater.newUpdater(FutureCall.class, ClientCall.class, "slot");

    /** Slot of the latest attempt; null before the first attempt. The slot may have another call by now. */
    private volatile @Nullable ClientCall slot;

    /**
     * Stream that the latest attempt sends; null for none. Set before that attempt is sent, and read when it has ended.
     */
    private @Nullable StreamSender upload;

    /**
     * Creates a call, which has not begun.
     *
     * @param earlier names the instance that the second call of a hedge avoids; null for any other call
     * @param hedged future that the caller of a hedged call has; null for any other call
     */
    public FutureCall(
            ClientSteps steps,
            Object[] arguments,
            Metadata metadata,
            long deadlineNanos,
            @Nullable Attempts earlier,
            @Nullable CompletableFuture<?> hedged) {
        super(steps);
        this.whole = hedged == null ? future : hedged;
        this.arguments = arguments;
        this.metadata = metadata;
        this.deadlineNanos = deadlineNanos;
        this.earlier = earlier;
    }

    /** Throws the failure of a one-way call if it has failed already, since nobody looks at its future. */
    static void failAtOnce(CallFuture<@Nullable Object> made) {
        if (!made.isCompletedExceptionally()) {
            return;
        }
        try {
            made.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
        }
    }

    /** Returns the instance of the latest attempt; null before the call has been sent. */
    public @Nullable ClientAddress address() {
        ClientCall used = slot;
        return used == null ? null : used.connection.address();
    }

    void giveUp() {
        future.cancel(true);
    }

    /**
     * Returns the future of the call if it is one-way and has not ended; otherwise null. See {@link ClientCall#oneWay}.
     */
    @Nullable
    CompletableFuture<?> oneWay() {
        return steps.method.kind == ClientMethod.Kind.ONE_WAY && !future.isDone() ? future : null;
    }

    /**
     * Starts the call.
     *
     * @param now time at which this thread began the call
     */
    public CallFuture<@Nullable Object> start(long now) {
        return start(false, now);
    }

    /** Starts the second call of a hedge, which adds nothing to the retry budget. */
    CallFuture<@Nullable Object> startAgain(long now) {
        return start(true, now);
    }

    private CallFuture<@Nullable Object> start(boolean isAgain, long begun) {
        long now = begun;
        try {
            if (steps.method.isRouted()) {
                key = steps.method.key(arguments);
                // key() may have run the caller's own code, which takes time
                now = steps.route.ticker().nanoTime();
            }
            permit = isAgain ? steps.route.calledAgain() : steps.route.called();
        } catch (RPCXException refused) {
            future.fail(refused);
            return future;
        }
        if (permit != CircuitBreaker.PERMITTED) {
            future.onEnd((result, thrown) -> steps.route.releasePermit(permit));
        }
        return attempt(now);
    }

    private void attemptAgain() {
        attempt(steps.route.ticker().nanoTime());
    }

    /**
     * Makes an attempt. If no connection is ready for it, the call waits for one.
     *
     * @param now time at which this thread began the attempt
     */
    private CallFuture<@Nullable Object> attempt(long now) {
        ClientConnection ready = steps.route.readyElsewhere(key, Attempts.avoided(earlier));
        if (ready != null && trySendOn(ready, now)) {
            return future;
        }
        if (keepsArguments()) {
            try {
                waitForConnection();
            } catch (Throwable e) {
                // An Error is caught too, for example if the heap is full. end() releases what the call holds.
                end(e);
            }
        }
        return future;
    }

    private void waitForConnection() {
        Route.Wait wait = steps.route.await(key, deadlineNanos, steps.times, permit, (connected, failure) -> {
            if (connected == null) {
                end(java.util.Objects.requireNonNull(failure));
            } else if (!trySendOn(connected, connected.nanoTime())) {
                attemptAgain();
            }
        });
        if (wait != null) {
            // When the future of the call ends, the call stops waiting. giveUp() does nothing if the call waits no
            // longer.
            future.onEnd((result, thrown) -> {
                if (wait.giveUp()) {
                    // no attempt is in progress or follows, so nobody else calls releaseReferences()
                    future.releaseReferences();
                }
            });
        }
    }

    /**
     * Keeps the arguments of a call that waits for its first connection, since the caller may change them from now on.
     *
     * @return false if the arguments cannot be kept, and the call has ended for this reason
     */
    private boolean keepsArguments() {
        if (steps.method.kind == ClientMethod.Kind.ONE_WAY) {
            awaitOnClose();
        }
        if (encoded != null || Attempts.haveFailed(earlier)) {
            return true;
        }
        try {
            ByteBuf made = steps.writer.encoded(arguments);
            hold(made.capacity());
            encoded = made;
        } catch (Throwable e) {
            end(e);
            return false;
        }
        return true;
    }

    private void hold(int bytes) {
        Route.WaitingBytes taken = steps.route.waitingBytes();
        future.onEnd(taken);
        taken.hold(bytes);
        held = taken;
    }

    /** Drops the kept arguments: the request is in its slot now, and is charged to the connection. */
    private void forgetEncoded() {
        encoded = null;
        Route.WaitingBytes taken = held;
        if (taken != null) {
            held = null;
            taken.giveBack();
        }
    }

    /** Makes the end of the client wait for this call, which the client would not find without a slot. */
    private void awaitOnClose() {
        if (!isWaitedFor) {
            isWaitedFor = true;
            steps.route.awaitOnClose(future);
        }
    }

    @Override
    void beforeSlotRelease(ClientCall slot, RPCXException error) {
        if (steps.method.kind != ClientMethod.Kind.ONE_WAY) {
            return;
        }
        awaitOnClose();
        if (encoded != null || !Attempts.isWorthAnother(earlier, steps, error, upload, address())) {
            return;
        }
        ByteBuf made = slot.arguments();
        if (made != null) {
            // Copied: the caller of a one-way call does not know how long the arguments have to stay unchanged.
            try {
                encoded = kept(made);
            } catch (RPCXException noRoom) {
                unkept = noRoom;
            }
        }
    }

    private ByteBuf kept(ByteBuf bytes) {
        hold(bytes.readableBytes());
        return Unpooled.copiedBuffer(bytes);
    }

    private void end(Throwable failure) {
        if (steps.method.kind == ClientMethod.Kind.ONE_WAY) {
            steps.route.oneWayFailed(steps.method, failure);
        }
        future.fail(Attempts.callerError(earlier, failure));
    }

    /**
     * Sends the call on a connection. If that throws, ends the call.
     *
     * @return false if other calls have filled the connection, and the call has to wait; true if the call has been sent
     *     or has ended
     */
    private boolean trySendOn(ClientConnection ready, long now) {
        try {
            return sendOn(ready, now);
        } catch (Throwable e) {
            end(e);
            return true;
        }
    }

    private boolean sendOn(ClientConnection on, long now) {
        if (future.isDone()) {
            // the caller has ended the call
            future.releaseReferences();
            return true;
        }
        ClientCall call = steps.writer.prepareOrWait(on, key, arguments, encoded, metadata, deadlineNanos, now);
        if (call == null) {
            return false;
        }
        long serial = call.serial;
        ClientConnection used = call.connection;
        StreamSender items = call.upload;
        boolean isHeld = true;
        try {
            if ((earlier != null || whole != future) && whole.isDone()) {
                dropUnsent(call);
                isHeld = false;
                return true;
            }
            if (items != null) {
                steps.endTrialOnceTaken(call, items, deadlineNanos, permit);
            }
            // The following stores are visible to any thread that sees the action that onCancel() stores below.
            copyFromSlot(call);
            SLOT.lazySet(this, call);
            upload = items;
            if (steps.method.kind != ClientMethod.Kind.ONE_WAY || call.keepsArguments()) {
                forgetEncoded();
            }
            future.onCancel(this);
            call.sendAsync(this);
            isHeld = false;
        } finally {
            if (isHeld) {
                // There are only stores here: if the stack is exhausted, no method can be called.
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        // The local variable and not the field: this attempt may have ended, and the next one may have set the field.
        RequestWriter.subscribe(items, arguments);
        if (future.isCancelled()) {
            // the future was cancelled before it had an action to run
            call.cancel(serial);
        }
        return true;
    }

    /**
     * Drops an attempt whose future ended while its arguments were read. The caller may change the arguments from then
     * on, so they may not be those with which the call was made.
     */
    private void dropUnsent(ClientCall call) {
        call.connection.address().ended(Health.Outcome.UNKNOWN, deadlineNanos - call.givenNanos);
        call.dropUnsent();
        giveUp();
        future.releaseReferences();
    }

    /**
     * Cancels the latest attempt, because the caller gives the call up. An attempt that another thread is making is
     * cancelled by that thread when it has been sent.
     */
    @Override
    public void run() {
        ClientCall used = slot;
        if (used != null) {
            used.cancel(this);
        }
    }

    private Health.Outcome ended(@Nullable RPCXException error) {
        ClientAddress used = address();
        return used == null ? Health.Outcome.UNKNOWN : ended(earlier, used, error, deadlineNanos);
    }

    @Override
    void succeed(@Nullable Object value) {
        steps.route.recordOutcome(ended(null), permit);
        future.succeed(value);
    }

    @Override
    void tellCaller(@Nullable Object value, @Nullable RPCXException error) {
        future.releaseReferences();
        if (error == null) {
            future.complete(value);
        } else {
            future.completeExceptionally(error);
        }
    }

    @Override
    void fail(RPCXException error) {
        Health.Outcome outcome = ended(error);
        Attempts all = mayHaveAnother() ? Attempts.next(earlier, steps, error, upload, address()) : null;
        if (all != null) {
            earlier = all;
            try {
                attemptAgain();
            } catch (Throwable e) {
                end(e);
            }
        } else {
            steps.route.recordOutcome(outcome, permit);
            ClientAddress last = address();
            if (unkept != null && !Attempts.isSent(error)) {
                end(unkept);
            } else {
                end(last == null ? error : Health.named(error, last, steps.method));
            }
        }
    }

    /** Whether another attempt may be made: the future has not ended, and the arguments of a one-way call were kept. */
    private boolean mayHaveAnother() {
        return !whole.isDone() && (steps.method.kind != ClientMethod.Kind.ONE_WAY || encoded != null);
    }
}
