package dev.rpcx;

import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * One slot of a connection: the call that has it, its request going out, its reply coming in. Used again and again, so that a call in
 * steady state allocates nothing here.
 *
 * <p>Two parties have to be done with it before it is free: the wire, which owes every request exactly one final frame, and the caller.
 * A caller that gives up leaves the slot taken until the final frame, so no late reply can meet the next call. Whoever of the two comes
 * second frees the slot. Only the event loop completes a call, or the caller while the loop has lent it the socket, so outcomes never
 * race each other.
 */
final class ClientCall extends Outbound {
    private static final int COMPLETED = 1;
    private static final int WIRE_DONE = 2;
    private static final int CALLER_DONE = 4;
    private static final int BOTH_DONE = WIRE_DONE | CALLER_DONE;

    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(ClientCall.class, "state", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final ClientConnection connection;
    final int slot;

    /** Link of the free list. */
    int nextFree;

    private volatile int state = BOTH_DONE;

    // set by the caller before the call is queued
    private @Nullable Thread waiter;
    private @Nullable AsyncCall async;

    /** The stream that the call takes to the server, if it takes one. */
    @Nullable
    StreamSender upload;

    long deadlineNanos;

    /** The thread that waits for this call may read the reply itself: a virtual one would hold up the others of its carrier. */
    boolean mayRead;

    // of whoever has the ReadTurn, which is mostly the event loop; before, of the thread that sends the call itself, if
    // one does
    private boolean onWire;
    private boolean sentHere;
    private boolean completed;
    private boolean receiving;

    // set by the event loop before it completes the call
    private @Nullable RPCXException error;

    ClientCall(ClientConnection connection, int slot) {
        this.connection = connection;
        this.slot = slot;
        this.id = slot;
    }

    /** Takes the slot for a new call: a new generation, an empty body. */
    void begin(long deadline) {
        id += Wire.SLOT_MASK + 1;
        if (id == slot) {
            // generation 0 is never used: call id 0 is the connection's own
            id += Wire.SLOT_MASK + 1;
        }
        deadlineNanos = deadline;
        clearBody();
        error = null;
        async = null;
        upload = null;
        mayRead = false;
        sentHere = false;
        completed = false;
        receiving = false;
        state = 0;
    }

    /** Gives the slot back before the call was queued. */
    void dropUnsent() {
        state = BOTH_DONE;
        connection.slots.release(this);
    }

    // ---- the caller

    void sendBlocking() {
        Thread caller = Thread.currentThread();
        waiter = caller;
        mayRead = !Threads.isVirtual(caller);
        connection.sendCall(this);
    }

    void sendAsync(AsyncCall call) {
        async = call;
        connection.sendCall(this);
    }

    /** Parks until the call is complete. Afterwards the caller reads {@link #body} or {@link #error}, and then calls {@link #callerDone}. */
    @Nullable
    RPCXException await() {
        if (sentHere && mayRead && (state & COMPLETED) == 0) {
            connection.readTurn.read(this);
        }
        while ((state & COMPLETED) == 0) {
            LockSupport.park(this);
            if (Thread.currentThread().isInterrupted() && (state & COMPLETED) == 0) {
                connection.send(new Cancel(this));
                return new RPCXException(
                        RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.MAYBE);
            }
        }
        return error;
    }

    void callerDone() {
        done(CALLER_DONE);
    }

    private void done(int bits) {
        int before = (int) STATE.getAndBitwiseOr(this, bits);
        if ((before & BOTH_DONE) != BOTH_DONE && ((before | bits) & BOTH_DONE) == BOTH_DONE) {
            connection.slots.release(this);
        }
    }

    /** Ends the call at the caller's wish, from any thread; nothing happens if it is over or its slot has another call. */
    void cancel(int callId) {
        connection.send(new Cancel(this, callId));
    }

    // ---- the event loop

    @Override
    boolean leaving() {
        if (connection.isLeft()) {
            lost();
            return false;
        }
        onWire = true;
        sentHere = false;
        connection.watch(deadlineNanos);
        return true;
    }

    @Override
    void left() {
        body.clear();
    }

    @Override
    boolean leavesHere() {
        if (!connection.enter()) {
            return false;
        }
        body.clear();
        sentHere = true;
        onWire = true;
        // before the first byte leaves: the event loop learns of this call from the reply
        VarHandle.fullFence();
        return true;
    }

    @Override
    void lost() {
        complete(connection.lostError(RPCXException.Executed.NOT_EXECUTED), true);
    }

    boolean isWaiting() {
        if (!onWire) {
            return false;
        }
        // a thread that sends its call itself sets the rest before
        VarHandle.acquireFence();
        return !completed;
    }

    boolean isOnWire(int callId) {
        return onWire && id == callId;
    }

    /** A reply, or its first part. */
    void onReply(ByteBuf payload, boolean more) {
        if (completed) {
            if (!more) {
                done(finalFrame());
            }
            return;
        }
        if (more) {
            body.clear();
            body.writeBytes(payload);
            receiving = true;
        } else if (async != null) {
            completeAsync(payload);
        } else {
            boolean isLone = sentHere && mayRead && payload.readableBytes() <= ReadTurn.MAX_BYTES / 2;
            body.clear();
            body.writeBytes(payload);
            complete(null, true);
            if (isLone) {
                connection.isAlone();
            } else {
                connection.isNotAlone();
            }
        }
    }

    /** The reply, read by the caller, who has the {@link ReadTurn}. @return false if it is not its any more */
    boolean onOwnReply(ByteBuf payload) {
        if (completed || !onWire) {
            return false;
        }
        body.clear();
        body.writeBytes(payload);
        completed = true;
        onWire = false;
        connection.onOwnFinal();
        STATE.getAndBitwiseOr(this, COMPLETED | WIRE_DONE);
        return true;
    }

    /** @return false if the message would be larger than allowed */
    boolean onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (completed) {
            if (!more) {
                done(finalFrame());
            }
            return true;
        }
        StreamReceiver stream = stream();
        if (stream != null && stream.isReceiving()) {
            return stream.onPart(payload, more, maxBytes);
        }
        if (!receiving) {
            throw new WireFault("a part of a message that has no beginning");
        }
        if (body.readableBytes() + payload.readableBytes() > maxBytes) {
            return false;
        }
        body.writeBytes(payload);
        if (!more) {
            if (async != null) {
                completeAsync(body);
            } else {
                complete(null, true);
            }
        }
        return true;
    }

    private @Nullable StreamReceiver stream() {
        AsyncCall waiting = async;
        return waiting == null ? null : waiting.receiver();
    }

    /** An item of the stream that the call brings, or its first part. */
    void onItem(ByteBuf payload, boolean more) {
        StreamReceiver stream = stream();
        if (stream != null && !completed) {
            stream.onItem(payload, more);
        }
    }

    void onCredit(long items) {
        StreamSender sender = upload;
        if (sender != null && !completed) {
            sender.onCredit(items);
        }
    }

    void onError(RPCXException outcome) {
        complete(outcome, true);
    }

    /** Ends the call for its caller; with {@code isFinal} for the wire too. */
    void complete(@Nullable RPCXException outcome, boolean isFinal) {
        int bits = COMPLETED | (isFinal ? finalFrame() : 0);
        if (completed) {
            done(bits);
            return;
        }
        completed = true;
        endUpload();
        error = outcome;
        AsyncCall call = async;
        if (call != null) {
            async = null;
            done(bits | CALLER_DONE);
            call.fail(outcome == null ? connection.lostError(RPCXException.Executed.MAYBE) : outcome);
        } else {
            // read first: once the state says so the slot may be another caller's
            Thread caller = waiter;
            done(bits);
            LockSupport.unpark(caller);
        }
    }

    private void completeAsync(ByteBuf reply) {
        AsyncCall call = java.util.Objects.requireNonNull(async);
        async = null;
        completed = true;
        endUpload();
        Object value = null;
        RPCXException failure = null;
        try {
            value = call.decode(reply);
        } catch (RPCXException e) {
            failure = e;
        }
        done(COMPLETED | CALLER_DONE | finalFrame());
        if (failure == null) {
            call.succeed(value);
        } else {
            call.fail(failure);
        }
    }

    private void endUpload() {
        StreamSender sender = upload;
        if (sender != null) {
            sender.cancel();
        }
    }

    private int finalFrame() {
        if (onWire) {
            onWire = false;
            connection.recall(this);
            connection.onFinal(sentHere);
        }
        return WIRE_DONE;
    }

    /** A caller's wish to end a call, in the queue behind the call's request. */
    private static final class Cancel extends Outbound {
        private final ClientCall call;

        Cancel(ClientCall call) {
            this(call, call.id);
        }

        Cancel(ClientCall call, int callId) {
            super(io.netty.buffer.Unpooled.EMPTY_BUFFER);
            this.call = call;
            this.head = Wire.CANCEL;
            this.id = callId;
        }

        @Override
        boolean leaving() {
            if (!call.isOnWire(id) || call.completed) {
                return false;
            }
            call.connection.recall(call);
            call.complete(
                    new RPCXException(
                            RPCXException.Code.CANCELLED, "the caller gave the call up", RPCXException.Executed.MAYBE),
                    false);
            return true;
        }

        @Override
        void left() {}

        @Override
        void lost() {}
    }
}
