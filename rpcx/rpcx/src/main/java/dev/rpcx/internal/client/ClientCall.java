package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.io.ReadTurn;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Outbox;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * One slot of a connection, and the call that uses it at present: its request, its reply and its end. The object is
 * reused by one call after another, so that a call allocates nothing here.
 *
 * <p>The server sends exactly one final frame for each request, and nothing more for it afterwards. The slot becomes
 * free when that frame has come and the caller is done with the call, whichever is last. If the caller gives the call
 * up, the slot waits for the final frame; otherwise the next call in the slot could take a late reply for its own. A
 * call is ended by one thread only: by the event loop, or by the caller's thread while the loop has lent it the socket
 * (see {@link ReadTurn}).
 */
public final class ClientCall extends Outbound implements ReadTurn.Reader {
    /** Size in bytes up to which the buffer of a free slot is not charged to the connection's account. */
    private static final int COUNTED_BYTES = 512;

    /**
     * Time after a call's deadline for which the caller's thread still waits for the event loop to end the call. Then
     * the thread cancels the call and waits no longer.
     */
    static final long MARGIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final long MAX_PARK_NANOS = TimeUnit.DAYS.toNanos(1);

    /**
     * Time that a request may wait before it is sent, without its computed metadata being computed again. They may
     * contain a token, which is valid for only 30 s.
     */
    private static final long OLD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final String GIVEN_UP = "the caller gave the call up";

    private static final int COMPLETED = 1;
    private static final int WIRE_DONE = 2;
    private static final int CALLER_DONE = 4;
    private static final int BOTH_DONE = WIRE_DONE | CALLER_DONE;

    /**
     * Changes {@link #state}. Do not use a VarHandle here. If the compare-and-set in {@link #done} throws, for example
     * because the stack is exhausted, the state must be unchanged. {@link Outbox} uses an updater for the same reason.
     */
    private static final AtomicIntegerFieldUpdater<ClientCall> STATE =
            AtomicIntegerFieldUpdater.newUpdater(ClientCall.class, "state");

    public final ClientConnection connection;
    public final int slot;

    /**
     * Index plus one of the slot below this one in the stack of free slots; 0 if there is none. See {@link CallSlots}.
     */
    int nextFree;

    /** The next of the free slots whose buffers {@link CallSlots#trim} is freeing; null if there is none. */
    @Nullable
    ClientCall nextTrimmed;

    /**
     * Bytes that are charged for the large buffer that the slot has kept for its next call; 0 if none. They stay
     * charged while that call uses the buffer. Accessed only by whoever has taken the slot.
     */
    private int keptBytes;

    /**
     * Bytes that are charged for the buffer of a large request; 0 for a small one. They are released when the request
     * has been sent and the buffer is small again, and at the latest when the slot becomes free or the caller gives the
     * call up.
     */
    private long requestBytes;

    /**
     * Bytes that are charged for the parts of a reply or a stream's item that have arrived. For a reply, they are
     * released when the slot becomes free; for an item, when its last part comes. If nobody waits for the message any
     * more, they are released at once.
     */
    private long replyBytes;

    /** Time at which the caller gave the call up. It has no meaning unless {@link #isOwed} returns true. */
    private long givenUpNanos;

    private volatile int state = BOTH_DONE;

    /**
     * {@link #serial} of the call whose caller could not release the slot, because its stack or memory was exhausted.
     * The caller stores this, then {@link CallSlots#hasOrphans}, and does nothing more. The event loop then releases
     * the slot. Once the slot has another call, the number does not match and has no effect.
     */
    public volatile long orphan;

    /**
     * Whether this slot has no call but could not be put on the stack of free slots. The event loop then does so.
     * Stored before {@link CallSlots#hasOrphans}.
     */
    public volatile boolean unreleased;

    /** Thread that blocks until the call has ended; null if none does. Set before the call is queued for sending. */
    private @Nullable Thread waiter;

    /**
     * The call that uses this slot, if no thread blocks for it. Set before the call is queued for sending. Null if a
     * thread blocks, and after the call has ended.
     */
    private @Nullable AsyncCall async;

    /**
     * Number of calls that have used this slot, which identifies the present one. It never repeats, unlike the
     * generation in the call id, which has only 16 bits. So a caller whose call has ended cannot affect the next call
     * here. Written before the call is queued for sending.
     */
    public long serial;

    /**
     * The CREDIT frame of this call that waits until the call's request has been sent; null if none waits. If the
     * request is taken back, so is this frame. Event loop only.
     */
    @Nullable
    Outbound waitingCredit;

    /** The stream that the call sends to the server as its argument; null if it sends none. */
    public @Nullable StreamSender upload;

    long deadlineNanos;

    /** How long the call still had until {@code deadlineNanos} when its request was written. */
    long givenNanos;

    /**
     * Index in the request of the field TIME, which says how much time the call has left. If the request has no such
     * field, it would be inserted here.
     */
    private int timeAt;

    /** Length in bytes of the field TIME in the request; 0 if the request has no such field. */
    private int timeBytes;

    /** The request's metadata, if any of their values are computed when the request is written; null otherwise. */
    private @Nullable Metadata computed;

    /** Index in the request of the first byte of {@link #computed}, the metadata with computed values. */
    private int metadataAt;

    /** Length in bytes of {@link #computed} in the request. */
    private int metadataBytes;

    /** Index in the request of the first byte of the arguments. */
    int argumentsAt;

    /** Index in the request after the last byte of the arguments. */
    int argumentsEnd;

    /**
     * Whether the thread that blocks for this call may read the reply from the socket itself. A virtual thread may not,
     * since blocking in a read would hold up the other virtual threads of its carrier.
     */
    boolean mayRead;

    // The fields from onWire to hasHandlerBegun are accessed by whoever has the ReadTurn, mostly the event loop. Before
    // the call is sent, they are accessed by the thread that has taken the slot.
    private boolean onWire;

    /**
     * The call id of the latest call in this slot that was sent to the server. The next call in the slot must have
     * another id. Ids repeat, since they contain a generation of 16 bits, and a server that gets the same id twice in a
     * row takes it for a fault of the connection.
     */
    private int idOnWire;

    private boolean sentByCaller;
    private boolean completed;

    /** Whether the socket's buffer has the complete request. Before that, the server cannot have executed the call. */
    private boolean sent;

    /**
     * Type of the message that is arriving in parts for this call: REPLY or ITEM; 0 if there is none. It is set until
     * the last part has come, even if nobody waits for the message any more.
     */
    private int arriving;

    /**
     * Whether a frame from the server has proved that the call's handler has begun. Such frames are the first part of a
     * reply, an item of a stream, and credit. If an error says NOT_EXECUTED after one of them, it is not believed.
     */
    private boolean hasHandlerBegun;

    /**
     * Error with which the call has ended; null if it has succeeded. Stored before the state says that the call has
     * ended.
     */
    private @Nullable RPCXException error;

    public ClientCall(ClientConnection connection, int slot) {
        this.connection = connection;
        this.slot = slot;
        this.id = slot;
    }

    /**
     * Begins a new call in this slot, with a new call id and an empty buffer. Called by the thread that has taken the
     * slot.
     */
    void begin(long deadline) {
        serial++;
        do {
            id += Wire.SLOT_MASK + 1;
            // Generation 0 is never used: with slot 0 it would give call id 0, which stands for the connection itself.
        } while (id == slot || id == idOnWire);
        deadlineNanos = deadline;
        clearBody();
        async = null;
        upload = null;
        mayRead = false;
        sentByCaller = false;
        completed = false;
        sent = false;
        isFirstFragmentWritten = false;
        arriving = 0;
        hasHandlerBegun = false;
        timeBytes = 0;
        computed = null;
        // No fence is needed: other threads find this use of the slot only through something that is published later.
        STATE.lazySet(this, 0);
    }

    /** Frees the slot of a call that will not be sent, because it was never queued for sending. */
    public void dropUnsent() {
        done(BOTH_DONE);
    }

    /**
     * Makes the slot available to the next call. A large buffer is kept for that call, as far as the connection's
     * account allows. If this throws, the slot is not available yet.
     *
     * @return whether the slot has kept a large buffer
     */
    private boolean free() {
        // references are dropped now, since it may take long until the slot has another call
        waiter = null;
        error = null;
        upload = null;
        computed = null;
        if (requestBytes > 0) {
            forgetRequest();
        }
        if (replyBytes > 0) {
            forgetReply();
        }
        int bytes = body.capacity();
        boolean keeps = bytes > COUNTED_BYTES && keep(bytes);
        if (bytes <= COUNTED_BYTES && keptBytes > 0) {
            // the kept buffer was replaced by a small one during the call
            forgetKept();
        }
        connection.slots.release(this);
        return keeps;
    }

    private boolean keep(int bytes) {
        if (bytes > KEPT_BYTES || connection.isClosed() || !holdKept(bytes)) {
            trim();
            shrinkBody();
            return false;
        }
        return true;
    }

    /**
     * Changes the charge for the buffer that this slot keeps for its next call to the buffer's present capacity.
     *
     * @param bytes capacity of the buffer
     * @return whether the account allows it; if not, the charge is unchanged
     */
    private boolean holdKept(int bytes) {
        if (bytes != keptBytes && !connection.account.tryCharge(Resource.KEPT_BYTES, bytes - keptBytes)) {
            return false;
        }
        keptBytes = bytes;
        return true;
    }

    /**
     * Charges the connection's account for the buffer of a large request. Called before the call is queued for sending.
     *
     * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if this client's requests already hold too many bytes
     */
    void holdRequest(long bytes) {
        if (!connection.account.tryCharge(Resource.REQUEST_BYTES, bytes)) {
            throw RPCXException.refused(
                    RPCXException.Code.OVERLOADED,
                    "too many bytes of requests under way (expected: fewer large ones at once)");
        }
        requestBytes = bytes;
    }

    private void forgetRequest() {
        connection.account.release(Resource.REQUEST_BYTES, requestBytes);
        requestBytes = 0;
    }

    private void forgetReply() {
        connection.account.release(Resource.REPLY_BYTES, replyBytes);
        replyBytes = 0;
    }

    /** Drops the parts of a reply that have arrived so far, and releases their charge. */
    private void forgetParts() {
        trim();
        shrinkBody();
        forgetReply();
    }

    private void forgetKept() {
        connection.account.release(Resource.KEPT_BYTES, keptBytes);
        keptBytes = 0;
    }

    /**
     * Gives back the large buffer that was kept for this slot's next call, and its charge. Called by the thread that
     * has the slot, or by one that has taken the free slot off the stack.
     */
    void trim() {
        if (keptBytes > 0) {
            // The charge is released first: if there is no memory for a smaller buffer, the present one is charged
            // again after its next use.
            forgetKept();
            shrinkBody();
        }
    }

    // ---- the caller

    void sendBlocking() {
        Thread caller = Thread.currentThread();
        waiter = caller;
        // a thread that sends a stream has more to do than to wait for the reply
        mayRead = upload == null && !ThreadTools.isVirtual(caller);
        connection.sendCall(this);
    }

    /** Sends a call for which no thread blocks. {@link AsyncCall#copyFromSlot} must have run before. */
    void sendAsync(AsyncCall call) {
        async = call;
        connection.sendCall(this);
    }

    /**
     * Returns the future of the call in this slot if it is one-way and has not ended; null otherwise. Thread-safe: any
     * thread may call this.
     */
    @Nullable
    CompletableFuture<?> oneWay() {
        return async instanceof FutureCall call ? call.oneWay() : null;
    }

    /**
     * Blocks the calling thread until the call has ended. Also returns if the thread is interrupted, or if the event
     * loop has not ended the call {@code MARGIN_NANOS} after its deadline; both cancel the call. Afterwards the caller
     * reads {@link #body} or the returned error, and then has to call {@link #callerDone}.
     *
     * @return error with which the call has ended; null if {@code body} is the result
     */
    public @Nullable RPCXException await() {
        if (sentByCaller && mayRead && !isCompleted()) {
            connection.readTurn.read(this);
        }
        while (!isCompleted()) {
            park();
            if (!isCompleted() && connection.nanoTime() - deadlineNanos > MARGIN_NANOS) {
                cancel(serial);
                return unheardError();
            }
            if (Thread.currentThread().isInterrupted() && !isCompleted()) {
                cancel(serial);
                return interrupted();
            }
        }
        return error;
    }

    private void park() {
        if (connection.overdueCallers.lookAfterCallers()) {
            LockSupport.park(this);
        } else {
            long left = deadlineNanos - connection.nanoTime();
            LockSupport.parkNanos(this, Math.min(Math.max(left, 0), MAX_PARK_NANOS) + MARGIN_NANOS);
        }
    }

    @Override
    public boolean isCompleted() {
        return (state & COMPLETED) != 0;
    }

    /**
     * Whether the caller of this slot's call still waits for the reply, or still reads it. Thread-safe: any thread may
     * call this.
     */
    boolean hasCaller() {
        return (state & CALLER_DONE) == 0;
    }

    /**
     * Wakes the thread that blocks for the call if the call's deadline was before the given time. A thread that is
     * woken too early waits on. Thread-safe: any thread may call this.
     */
    void wakeIfOverdue(long latestNanos) {
        if (deadlineNanos - latestNanos < 0) {
            wake();
        }
    }

    /**
     * Wakes the thread that blocks for the call, if there is one. A thread that is woken too early waits on.
     * Thread-safe: any thread may call this.
     */
    void wake() {
        LockSupport.unpark(waiter);
    }

    /**
     * Returns the error of a call that the event loop has not ended in time, since the loop is held up. The caller
     * waits no longer.
     */
    static RPCXException unheardError() {
        return LocalFailure.unheard("no reply in time, and the event loop is held up", RPCXException.Executed.MAYBE);
    }

    /** Returns the error of a call whose caller has stopped waiting, because its thread was interrupted. */
    static RPCXException interrupted() {
        return new RPCXException(
                RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.MAYBE, null);
    }

    void callerDone() {
        done(CALLER_DONE);
    }

    private void done(int bits) {
        int before;
        do {
            before = state;
        } while (!STATE.compareAndSet(this, before, before | bits));
        if ((before & BOTH_DONE) != BOTH_DONE && ((before | bits) & BOTH_DONE) == BOTH_DONE) {
            boolean keeps;
            boolean isReleased = false;
            try {
                keeps = free();
                isReleased = true;
            } finally {
                if (!isReleased) {
                    unreleased = true;
                    connection.slots.hasOrphans = true;
                }
            }
            if (keeps) {
                kept();
            }
        }
    }

    /**
     * Tells the connection that this slot has kept a large buffer. Never throws, since a failure here must not end the
     * next call, which may have the slot already.
     */
    private void kept() {
        try {
            connection.onKept();
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    /**
     * Returns the number that identifies the call that uses this slot at present. Read it before the call is sent,
     * since the slot may have another call afterwards.
     */
    public long serial() {
        return serial;
    }

    /**
     * Ends a call that its caller gives up. Does nothing if that call has ended. Thread-safe: any thread may call this.
     *
     * @param callSerial {@link #serial} of the call
     */
    public void cancel(long callSerial) {
        cancel(callSerial, RPCXException.Code.CANCELLED, GIVEN_UP, null);
    }

    /**
     * Ends a call that its caller gives up. Does nothing if that call does not use this slot any more. Here the call is
     * identified by its object, since its serial may be changing: the event loop may be making another attempt.
     * Thread-safe: any thread may call this.
     */
    public void cancel(AsyncCall of) {
        connection.send(new Cancel(this, RPCXException.Code.CANCELLED, GIVEN_UP, null) {
            @Override
            boolean isThere() {
                return isOnWire(of);
            }
        });
    }

    /**
     * Ends a call with an error, for another reason than that its caller gives it up. Does nothing if that call has
     * ended. Thread-safe: any thread may call this.
     *
     * @param callSerial {@link #serial} of the call
     */
    public void cancel(long callSerial, RPCXException.Code code, String why, @Nullable Throwable cause) {
        connection.send(new Cancel(this, code, why, cause) {
            @Override
            boolean isThere() {
                return isOnWire(callSerial);
            }
        });
    }

    // ---- the event loop

    @Override
    public boolean beforeSend() {
        if (connection.isDrainingOrClosed()) {
            onDropped();
            return false;
        }
        onWire = true;
        sentByCaller = false;
        // While the peer does not read, the request is held back from the socket's queue, so that it can be taken back.
        holdUntilWritable = connection.isSocketBusy();
        connection.watch(deadlineNanos);
        return true;
    }

    @Override
    public void onSent() {
        idOnWire = id;
        isFirstFragmentWritten = true;
        sent = true;
        clearBody();
        if (requestBytes > 0) {
            if (connection.keepsMuch() && (head & Wire.TYPE_MASK) != Wire.NOTICE) {
                // The buffer is given up, except for a notice: another attempt may need the arguments of a notice.
                trim();
                shrinkBody();
            }
            if (body.capacity() <= SMALL_BYTES) {
                // A larger buffer is kept for the next call, and stays charged as a request as long as this call has
                // it.
                forgetRequest();
            }
        }
    }

    /**
     * Sets where the request has the field TIME, which says how much time the call has left. If the request has to wait
     * for the socket, the field is written again when it is sent, or inserted if it has become necessary. Called before
     * the call is queued for sending.
     *
     * @param index index in the request at which the field begins or would begin
     * @param bytes length of the field; 0 if the call has the full default time, so that the request does not have the
     *     field
     */
    void timeAt(int index, int bytes) {
        timeAt = index;
        timeBytes = bytes;
    }

    /**
     * Sets where the request has its metadata, if any of their values are computed. They are computed again if the
     * request waits long before it is sent. Called before the call is queued for sending.
     *
     * @param index index in the request at which the metadata begin
     * @param bytes their length in the request
     */
    void metadataAt(Metadata metadata, int index, int bytes) {
        computed = metadata;
        metadataAt = index;
        metadataBytes = bytes;
    }

    @Override
    public void begins() {
        idOnWire = id;
        long left = deadlineNanos - connection.nanoTime();
        long micros = Math.max(1, TimeUnit.NANOSECONDS.toMicros(left));
        if (timeBytes > 0) {
            Varint.writePadded(body, timeAt, timeBytes, micros);
        } else if (connection.carriesTime(left)) {
            head |= Wire.TIME;
            int bytes = Varint.insert(body, timeAt, micros);
            metadataAt += bytes;
            argumentsAt += bytes;
            argumentsEnd += bytes;
        }
        Metadata given = computed;
        if (given != null && givenNanos - left > OLD_NANOS) {
            computeAgain(given);
        }
    }

    /**
     * Computes the metadata again, and writes them into the request. If this fails, or they do not fit, the old ones
     * are sent, and the server decides whether it accepts them.
     */
    private void computeAgain(Metadata given) {
        ByteBuf anew = Unpooled.buffer();
        try {
            MetadataFields.write(anew, given);
        } catch (Throwable e) {
            CallbackFailures.log(e);
            return;
        } finally {
            LoopThread.forgetInterrupt();
        }
        int more = anew.readableBytes() - metadataBytes;
        if (more > body.writableBytes()) {
            return;
        }
        if (more != 0) {
            int behind = metadataAt + metadataBytes;
            body.setBytes(behind + more, body, behind, body.writerIndex() - behind);
            body.writerIndex(body.writerIndex() + more);
            argumentsAt += more;
            argumentsEnd += more;
            metadataBytes += more;
        }
        body.setBytes(metadataAt, anew);
    }

    @Override
    public boolean beforeDirectWrite() {
        if (!connection.enter()) {
            return false;
        }
        body.clear();
        sentByCaller = true;
        isFirstFragmentWritten = true;
        sent = true;
        idOnWire = id;
        // This fence pairs with the acquire fence in seesOnWire().
        VarHandle.releaseFence();
        onWire = true;
        // The stores have to be visible before the first byte is sent, since the event loop may see the reply at once.
        VarHandle.fullFence();
        return true;
    }

    @Override
    public void onDropped() {
        complete(connection.notSentError(), true);
    }

    /**
     * Whether the server may still send something for this call. That is so if the request has been sent, or waits only
     * for the socket, and the last frame for the call has not come. If this is true, the calling thread also sees all
     * fields that were stored before {@code onWire}.
     */
    private boolean seesOnWire() {
        if (!onWire) {
            return false;
        }
        VarHandle.acquireFence();
        return true;
    }

    boolean isWaiting() {
        return seesOnWire() && !completed;
    }

    boolean isOnWire(int callId) {
        return seesOnWire() && id == callId;
    }

    boolean isOnWire(long callSerial) {
        return seesOnWire() && serial == callSerial;
    }

    private boolean isOnWire(AsyncCall of) {
        return seesOnWire() && async == of;
    }

    /**
     * Frees this slot if its caller could not, because its stack or memory was exhausted. If that caller's call has
     * been sent, the slot becomes free with the last frame that the server sends for it. If it has not been sent and is
     * not in the queue either, it never will be, since such a caller does nothing more.
     *
     * @return false if the call may still be in the queue, so that this has to be called again later
     */
    boolean freeIfOrphan() {
        if (unreleased) {
            unreleased = false;
            state = 0;
            done(BOTH_DONE);
            return true;
        }
        long gone = orphan;
        // Read before the serial: if this is the state of a later use of the slot, the serial belongs to a later use
        // too.
        int now = state;
        if (gone == 0 || (now & CALLER_DONE) != 0 || gone != serial) {
            return true;
        }
        if (onWire || (now & WIRE_DONE) != 0) {
            done(CALLER_DONE);
            return true;
        }
        if (!connection.isQueueEmpty()) {
            return false;
        }
        done(BOTH_DONE);
        return true;
    }

    /**
     * Returns MAYBE if the server may have executed the call, otherwise NOT_EXECUTED. For a call that the server has
     * not ended.
     */
    RPCXException.Executed executed() {
        return sent || hasHandlerBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
    }

    /**
     * Throws if the server begins a message of this call while another one is incomplete. Parts do not say to which
     * message they belong, so messages must not overlap.
     *
     * @param what the message that begins, for the text of the error
     */
    private void refuseWithin(String what) {
        if (arriving != 0) {
            throw new WireFault(what + " within a message in parts (expected: its last part first)");
        }
    }

    /**
     * Handles the reply to the call, or the first part of it.
     *
     * @param more whether further parts follow
     */
    void onReply(ByteBuf payload, boolean more) {
        refuseWithin("a reply");
        if (completed) {
            arriving = more ? Wire.REPLY : 0;
            if (!more) {
                done(finalFrame());
            }
            return;
        }
        if (more) {
            arriving = Wire.REPLY;
            hasHandlerBegun = true;
            if (!sent) {
                // the server wants no more of the request, and the reply needs the buffer
                recall();
                sent = true;
            }
            // The server wants no more of the stream either: after this frame no item and no END is sent for the call.
            endUpload();
            body.clear();
            if (hold(HeapArray.growth(body, payload.readableBytes()), false)) {
                HeapArray.grow(body, payload.readableBytes());
                body.writeBytes(payload);
            }
        } else if (async != null) {
            completeAsync(payload);
        } else {
            boolean isLone = sentByCaller && mayRead && payload.readableBytes() <= ReadTurn.MAX_BYTES / 2;
            body.clear();
            body.writeBytes(payload);
            complete(null, true);
            if (isLone) {
                connection.onLoneReply();
            } else {
                connection.isNotAlone();
            }
        }
    }

    @Override
    public boolean tryComplete(ByteBuf arrived) {
        try {
            return WireConnection.enterFrame(arrived, Wire.REPLY, id) && onOwnReply(arrived);
        } catch (WireFault fault) {
            // the fault is left to the event loop, which reads the same bytes
            return false;
        }
    }

    /**
     * Completes the call with the reply that the caller's own thread has read from the socket.
     *
     * @return false if the event loop has to handle the reply
     */
    private boolean onOwnReply(ByteBuf payload) {
        if (completed || !onWire || upload != null || arriving != 0) {
            return false;
        }
        body.clear();
        body.writeBytes(payload);
        completed = true;
        onWire = false;
        connection.onOwnFinal();
        done(COMPLETED | WIRE_DONE);
        return true;
    }

    /**
     * Handles a further part of a reply or of a stream's item. The last part of a reply is the call's final frame,
     * after which the server sends nothing for it. That is so even if nobody waits for the call any more. The last part
     * of an item is not.
     *
     * @param more whether further parts follow
     * @param maxBytes maximum size of the complete message
     */
    void onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (arriving == 0) {
            throw new WireFault("a part of a message that has not begun");
        }
        if (completed) {
            if (isFinal(Wire.PART, more)) {
                done(finalFrame());
            } else if (!more) {
                arriving = 0;
            }
            return;
        }
        if (arriving == Wire.REPLY) {
            onReplyPart(payload, more, maxBytes);
            return;
        }
        StreamReceiver stream = stream();
        if (more) {
            if (stream != null && !hold(stream.growth(payload.readableBytes()), false)) {
                return;
            }
        } else {
            // the item is complete: from here on its memory belongs to its subscriber
            arriving = 0;
            if (replyBytes > 0) {
                forgetReply();
            }
        }
        if (stream != null && stream.isReceiving() && !stream.onPart(payload, more, maxBytes)) {
            end(tooLarge("an item", maxBytes), false);
        }
    }

    private void onReplyPart(ByteBuf payload, boolean more, int maxBytes) {
        if (body.readableBytes() + payload.readableBytes() > maxBytes) {
            end(tooLarge("a result", maxBytes), !more);
            return;
        }
        if (!hold(HeapArray.growth(body, payload.readableBytes()), !more)) {
            return;
        }
        HeapArray.grow(body, payload.readableBytes());
        body.writeBytes(payload);
        if (!more) {
            if (async != null) {
                completeAsync(body);
            } else {
                complete(null, true);
            }
        }
    }

    /**
     * Charges the connection's account for the growth of a buffer in which a message arrives in parts. If the account
     * does not allow it, the call ends.
     *
     * @param isFinal whether the frame that is being handled is the call's final frame
     * @return false if the call has ended
     */
    private boolean hold(long bytes, boolean isFinal) {
        if (bytes == 0) {
            return true;
        }
        if (connection.account.tryCharge(Resource.REPLY_BYTES, bytes)) {
            replyBytes += bytes;
            return true;
        }
        end(
                LocalFailure.noRoom("too many bytes of replies and items on their way to this client"
                        + " (expected: fewer calls with large results at once)"),
                isFinal);
        return false;
    }

    /**
     * Whether a frame is the final one of this call, after which the server sends nothing more for it.
     *
     * @param type type of the frame
     * @param more whether further parts of the same message follow
     */
    private boolean isFinal(int type, boolean more) {
        return switch (type) {
            case Wire.ERROR -> true;
            case Wire.REPLY -> !more;
            case Wire.PART -> !more && arriving == Wire.REPLY;
            default -> false;
        };
    }

    private static RPCXException tooLarge(String what, int maxBytes) {
        return new RPCXException(RPCXException.Code.TOO_LARGE, what + " of more than " + maxBytes + " bytes");
    }

    private @Nullable StreamReceiver stream() {
        AsyncCall waiting = async;
        return waiting == null ? null : waiting.receiver();
    }

    /**
     * Handles an item of the stream that is the call's result, or the first part of an item.
     *
     * @param more whether further parts of the item follow
     */
    void onItem(ByteBuf payload, boolean more) {
        refuseWithin("an item");
        if (completed) {
            arriving = more ? Wire.ITEM : 0;
            return;
        }
        StreamReceiver stream = stream();
        if (stream == null) {
            throw new WireFault("an item for a call that brings none");
        }
        hasHandlerBegun = true;
        java.util.Objects.requireNonNull(async).arrived();
        if (more) {
            arriving = Wire.ITEM;
            if (!hold(stream.growth(payload.readableBytes()), false)) {
                return;
            }
        }
        stream.onItem(payload, more);
    }

    /**
     * Whether the caller has given the call up, but the server has not yet sent its final frame, that is, the last one
     * for the call. Event loop only.
     */
    boolean isOwed() {
        return seesOnWire() && completed;
    }

    /**
     * Returns the time at which the caller gave the call up. Call it only if {@link #isOwed} returns true. Event loop
     * only.
     */
    long givenUpNanos() {
        return givenUpNanos;
    }

    void onCredit(ByteBuf payload) {
        if (completed) {
            return;
        }
        long items = Streams.credit(payload);
        hasHandlerBegun = true;
        StreamSender sender = upload;
        if (sender != null) {
            sender.onCredit(items);
        }
    }

    void onError(RPCXException outcome) {
        complete(hasHandlerBegun && !completed ? ofHandler(outcome) : outcome, true);
    }

    /**
     * Returns the error with EXECUTED instead of NOT_EXECUTED, since this client knows that the call's handler has
     * begun. Any other error is returned as it is.
     */
    private static RPCXException ofHandler(RPCXException outcome) {
        return outcome.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(outcome.code(), outcome.getMessage(), RPCXException.Executed.EXECUTED, outcome)
                : outcome;
    }

    /**
     * Ends this call because one of its frames could not be handled. Its decoding or the user's code has failed, or
     * memory is short. The connection and its other calls go on.
     *
     * @param type type of the frame
     * @param more whether further parts of the same message follow
     */
    void onFailure(int type, boolean more, Throwable failure) {
        end(
                failure instanceof OutOfMemoryError
                        ? LocalFailure.noRoom("no memory is left for a frame from the server")
                        : new RPCXException(
                                RPCXException.Code.INVALID,
                                "a frame from the server cannot be handled: " + ThrowableText.words(failure),
                                type == Wire.CREDIT ? RPCXException.Executed.MAYBE : RPCXException.Executed.EXECUTED,
                                failure),
                isFinal(type, more));
    }

    /**
     * Ends the call with an error. Tells the server so by CANCEL, unless the server has already sent the final frame.
     *
     * @param isFinal whether the frame that is being handled is the call's final frame
     */
    private void end(RPCXException outcome, boolean isFinal) {
        boolean tells = !isFinal && !completed;
        int callId = id;
        if (tells && !sent) {
            // Only a broken server sends a frame that is not final before it has the complete request. The rest is not
            // sent.
            recall();
        }
        complete(outcome, isFinal);
        if (tells) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /** Ends the call with DEADLINE_EXCEEDED, because its deadline has passed. */
    void expire(String why) {
        expire(new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, why, executed(), null));
    }

    /**
     * Ends the call because its deadline has passed while this client's event loop was held up. Such an end does not
     * count as a failure of the server.
     */
    void expireUnheard(String why) {
        expire(LocalFailure.unheard(why, executed()));
    }

    private void expire(RPCXException outcome) {
        int callId = id;
        if (giveUp(outcome)) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /**
     * Ends a call that the server has not ended yet. If no byte of its request has been sent, the request is taken
     * back, and the server never learns of the call.
     *
     * @return whether the server knows the call, so that CANCEL has to be sent
     */
    private boolean giveUp(RPCXException outcome) {
        boolean seen = isFirstFragmentWritten;
        if (!sent) {
            recall();
        }
        complete(outcome, !seen);
        return seen;
    }

    /**
     * Ends this attempt of a call if no byte of its request has been sent. Called when the connection takes no more
     * calls, so that the call may go to another one.
     */
    void endUnsent() {
        if (seesOnWire() && !isFirstFragmentWritten && !completed) {
            complete(connection.notSentError(), true);
        }
    }

    /**
     * Ends the call for its caller, who gets the error or the reply in {@link #body}.
     *
     * @param outcome error with which the call ends; null if it has succeeded
     * @param isFinal whether the server will send nothing more for the call: its final frame has come, or never will
     */
    void complete(@Nullable RPCXException outcome, boolean isFinal) {
        if (completed) {
            done(COMPLETED | (isFinal ? finalFrame() : 0));
            return;
        }
        completed = true;
        error = outcome;
        AsyncCall call = async;
        if (call != null) {
            if (outcome != null) {
                beforeSlotRelease(call, outcome);
            }
            async = null;
        }
        // Read before the state changes, since the slot may have another caller after that.
        Thread caller = waiter;
        int bits = call == null ? COMPLETED : COMPLETED | CALLER_DONE;
        try {
            if (isFinal) {
                bits |= WIRE_DONE;
                finalFrame();
            } else {
                givenUpNanos = connection.nanoTime();
                connection.onGivenUp();
                if (arriving == Wire.REPLY) {
                    // the last part of the reply may never come, and nobody would read it
                    forgetParts();
                }
                if (requestBytes > 0) {
                    // the call's final frame may never come, and the charge must not wait for it
                    trim();
                    shrinkBody();
                    forgetRequest();
                }
            }
            endUpload();
            if (call != null && arriving == Wire.ITEM && replyBytes > 0) {
                // the receiver drops the item's parts when the stream ends
                forgetReply();
            }
        } finally {
            // Runs even if a step above has thrown, for example for lack of memory: nobody else ends the call.
            end(call, caller, bits, outcome);
        }
    }

    /**
     * Returns the encoded arguments of the call, so that another attempt can send them again. Call it before the slot
     * is free, on the event loop, and only if no thread blocks for the call.
     *
     * @return null if the buffer does not have the arguments any more, for example because {@link #onSent} has shrunk
     *     it
     */
    @Nullable
    ByteBuf arguments() {
        return hasHandlerBegun || argumentsEnd > body.capacity()
                ? null
                : body.slice(argumentsAt, argumentsEnd - argumentsAt);
    }

    /**
     * Whether the buffer will still have the arguments after the request has been sent, so that {@link #arguments}
     * returns them. That holds until the server sends something for the call.
     */
    boolean keepsArguments() {
        return body.capacity() <= KEPT_BYTES;
    }

    private void beforeSlotRelease(AsyncCall call, RPCXException outcome) {
        try {
            call.beforeSlotRelease(this, outcome);
        } catch (Throwable noMemory) {
            // the call ends in any case
            ThreadTools.report(noMemory);
        }
    }

    private void end(@Nullable AsyncCall call, @Nullable Thread caller, int bits, @Nullable RPCXException outcome) {
        try {
            done(bits);
        } finally {
            if (call == null) {
                LockSupport.unpark(caller);
            } else {
                call.end(null, outcome == null ? connection.lostError(RPCXException.Executed.MAYBE) : outcome);
            }
        }
    }

    private void completeAsync(ByteBuf reply) {
        AsyncCall call = java.util.Objects.requireNonNull(async);
        async = null;
        completed = true;
        Object value = null;
        RPCXException failure = ReplyReader.UNREADABLE;
        try {
            endUpload();
            value = call.decode(reply);
            failure = null;
        } catch (RPCXException e) {
            failure = e;
        } catch (Throwable e) {
            failure = ReplyReader.unreadable(e);
        } finally {
            endAsync(call, value, failure);
        }
    }

    private void endAsync(AsyncCall call, @Nullable Object value, @Nullable RPCXException failure) {
        // each step runs even if the one before it fails, as in complete()
        try {
            finalFrame();
        } finally {
            try {
                done(COMPLETED | CALLER_DONE | WIRE_DONE);
            } finally {
                call.end(value, failure);
            }
        }
    }

    private void endUpload() {
        StreamSender sender = upload;
        if (sender != null) {
            try {
                sender.cancel();
            } catch (Throwable e) {
                // the user's subscription has failed; the call is over in any case
                CallbackFailures.log(e);
            }
        }
    }

    /** Takes back what has not been sent of the request. Also takes back the CREDIT frame that waits behind it. */
    private void recall() {
        connection.recall(this);
        recallCredit();
    }

    private void recallCredit() {
        Outbound credit = waitingCredit;
        if (credit != null) {
            waitingCredit = null;
            connection.recall(credit);
        }
    }

    private int finalFrame() {
        if (onWire) {
            onWire = false;
            if (!sent) {
                connection.recall(this);
            }
            recallCredit();
            connection.onFinal(sentByCaller);
        }
        return WIRE_DONE;
    }

    /**
     * A message that ends a call from this side, as CANCEL. It is sent after the call's request. If no byte of the
     * request has been sent by then, the request is taken back, and the server gets neither of the two.
     */
    private abstract static class Cancel extends Outbound {
        private final ClientCall call;
        private final RPCXException.Code code;
        private final String why;
        private final @Nullable Throwable cause;

        Cancel(ClientCall call, RPCXException.Code code, String why, @Nullable Throwable cause) {
            super(io.netty.buffer.Unpooled.EMPTY_BUFFER);
            this.call = call;
            this.code = code;
            this.why = why;
            this.cause = cause;
            this.head = Wire.CANCEL;
        }

        /** Whether the call that this message has to end still uses the slot. */
        abstract boolean isThere();

        @Override
        public boolean beforeSend() {
            if (!isThere() || call.completed) {
                return false;
            }
            id = call.id;
            return call.giveUp(new RPCXException(code, why, call.executed(), cause));
        }

        @Override
        public void onSent() {}

        @Override
        public void onDropped() {}
    }
}
