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
 * A call whose caller has a future. This class also makes one-way calls, and the two calls of a {@link Hedge}.
 *
 * <p>The caller's thread begins the call; only the second call of a hedge begins on an event loop. An event loop makes
 * further attempts and usually completes the future. If the call fails before it is sent, the thread that made the
 * attempt completes the future. This class blocks no thread while the call waits.
 */
public final class FutureCall extends AsyncCall implements Runnable {
    private final Object[] arguments;
    private final Metadata metadata;
    private final long deadlineNanos;
    private final CallFuture<@Nullable Object> future = new CallFuture<>();

    /**
     * The future that the caller has. The two calls of a hedge have the hedge's future here, and any other call has
     * {@code future}.
     */
    private final CompletableFuture<?> whole;

    /**
     * The failed attempts of the call, and the instance that the next attempt avoids; null if no attempt has failed and
     * no instance is avoided. No lock is needed. The thread that makes an attempt uses the field only before it sends
     * the attempt. The thread on which the attempt ends uses the field only after that end, and sets the field before
     * the next attempt begins.
     */
    private @Nullable Attempts earlier;

    /**
     * The encoded arguments, as they were when the call was made, kept for a later attempt; null if none are kept here.
     * Every call keeps its arguments from its first wait for a connection until it is sent. A one-way call also keeps
     * them for further attempts. While an attempt is being made, its slot has the arguments and this field is null. An
     * attempt for which nothing was kept encodes the arguments itself.
     */
    private @Nullable ByteBuf encoded;

    /** The charge for the bytes of {@link #encoded}; null if nothing is charged. */
    private Route.@Nullable WaitingBytes held;

    private int key;
    private long permit = CircuitBreaker.PERMITTED;

    /**
     * The error which says that there was no room to keep the arguments of this one-way call for another attempt;
     * otherwise null. The call ends with this error only if no byte of the failed attempt was sent.
     */
    private @Nullable RPCXException unkept;

    /**
     * Whether {@link #awaitOnClose} has been called, so that closing the client waits for this one-way call. No lock is
     * needed: the thread that makes an attempt uses the field only before it sends. The event loop uses the field only
     * after that attempt has ended.
     */
    private boolean isWaitedFor;

    private static final AtomicReferenceFieldUpdater<FutureCall, @Nullable ClientCall> SLOT =
            AtomicReferenceFieldUpdater.newUpdater(FutureCall.class, ClientCall.class, "slot");

    /**
     * The slot of the latest attempt; null before the first attempt. When that attempt has ended, another call can get
     * the slot. Stored by the thread that makes the attempt, and read by any thread that cancels or that asks for the
     * {@link #address}.
     */
    private volatile @Nullable ClientCall slot;

    /**
     * Sender of the call's outgoing stream in the latest attempt; null if no argument of the call is a stream. No lock
     * is needed: the thread that makes an attempt stores the field before it sends the request, and the event loop
     * reads the field only after the attempt has ended.
     */
    private @Nullable StreamSender upload;

    /**
     * Creates a call without starting it.
     *
     * @param earlier for the second call of a hedge, the result of {@link Attempts#beside}, which contains the instance
     *     that this call avoids at first; null for any other call
     * @param hedged for a call of a hedge, the future that the caller of the hedge has; null for any other call
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

    /**
     * Throws the failure of a one-way call, if the call has failed already. Otherwise the caller would not learn of the
     * failure, since nobody looks at the future of a one-way call.
     */
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

    /** Returns the instance that was chosen for the latest attempt; null if no attempt has taken a slot yet. */
    public @Nullable ClientAddress address() {
        ClientCall used = slot;
        return used == null ? null : used.connection.address();
    }

    void giveUp() {
        future.cancel(true);
    }

    /** Returns the future of this call if the call is one-way and has not ended; otherwise null. */
    @Nullable
    CompletableFuture<?> oneWay() {
        return steps.method.kind == ClientMethod.Kind.ONE_WAY && !future.isDone() ? future : null;
    }

    /**
     * Starts the call.
     *
     * @param now time in nanoseconds at which this thread began the call
     */
    public CallFuture<@Nullable Object> start(long now) {
        return start(false, now);
    }

    /**
     * Starts the call as the second call of a hedge. Unlike the first call, the second one adds nothing to the retry
     * budget.
     */
    CallFuture<@Nullable Object> startAgain(long now) {
        return start(true, now);
    }

    private CallFuture<@Nullable Object> start(boolean isAgain, long begun) {
        long now = begun;
        try {
            if (steps.method.isRouted()) {
                key = steps.method.key(arguments);
                // key() can have run the caller's own code, which takes time, so the clock is read again.
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
     * Makes an attempt on a connection that is ready. If no connection is ready, the call waits for one without
     * blocking.
     *
     * @param now time in nanoseconds at which this thread began the attempt
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
                // Errors are caught too, for example if the heap is full. end() releases what the call holds.
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
            // When the future ends, for example because the caller has cancelled it, the call stops waiting. If the
            // call does not wait any more, giveUp() does nothing.
            future.onEnd((result, thrown) -> {
                if (wait.giveUp()) {
                    // No attempt is in progress or follows, so nobody else would call releaseReferences().
                    future.releaseReferences();
                }
            });
        }
    }

    /**
     * Encodes the arguments and keeps the bytes before the call first waits for a connection, since the caller might
     * change the arguments while the call waits. After a failed attempt, this method encodes nothing: a one-way call
     * has kept its arguments already, and the next attempt of any other call encodes them.
     *
     * @return false if the arguments could not be encoded or kept; this method has then ended the call
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

    /**
     * Drops the kept arguments and gives back the charge for them. The slot has the arguments now, and the connection
     * is charged for them if the request is large.
     */
    private void forgetEncoded() {
        encoded = null;
        Route.WaitingBytes taken = held;
        if (taken != null) {
            held = null;
            taken.giveBack();
        }
    }

    /**
     * Makes the close of the client wait for this one-way call. Without this method, the client would not find the call
     * while the call has no slot.
     */
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
            // The encoded arguments are copied, since the caller of a one-way call does not know how long the arguments
            // have to stay unchanged.
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
        Throwable error = Attempts.callerError(earlier, failure);
        // A hedge looks at the errors of both its calls before it tells the caller.
        future.fail(whole == future ? steps.told(error) : error);
    }

    /**
     * Sends the call on a connection. If an exception occurs, this method ends the call and does not throw.
     *
     * @return true if the call has been sent or has ended; false if other calls have filled the connection, and the
     *     call has to wait
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
            // The call has been given up. For example, its caller has cancelled it, or the other call of its hedge has
            // decided the result.
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
            // Otherwise a thread that cancels could find no slot, or the slot of an earlier attempt.
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
                // If the stack is exhausted, no method can be called here. So this thread only sets two fields, which
                // make the event loop release the slot. Their order matters, see CallSlots.hasOrphans.
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        // The local variable is read and not the field, since this attempt can have ended, and the next one can have
        // set the field.
        RequestWriter.subscribe(items, arguments);
        if (future.isCancelled()) {
            // The future may have been cancelled, by any thread, before onCancel() gave it an action to run.
            call.cancel(serial);
        }
        return true;
    }

    /**
     * Drops an attempt that has not been sent, since the caller's future ended while the arguments were being encoded.
     * Once that future has ended, the caller is free to change the arguments, so the request could contain changed
     * ones.
     */
    private void dropUnsent(ClientCall call) {
        call.connection.address().ended(Health.Outcome.UNKNOWN, deadlineNanos - call.givenNanos);
        call.dropUnsent();
        giveUp();
        future.releaseReferences();
    }

    /**
     * Cancels the latest attempt, since the caller has given the call up. If another thread is still sending an
     * attempt, that thread cancels the attempt afterwards.
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

    /**
     * Returns whether another attempt is possible. This is so if the caller's future has not ended. For a one-way call,
     * the arguments must also have been kept.
     */
    private boolean mayHaveAnother() {
        return !whole.isDone() && (steps.method.kind != ClientMethod.Kind.ONE_WAY || encoded != null);
    }
}
