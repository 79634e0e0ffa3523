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
 * One slot of a connection, and the call that has it: the request that is sent and the reply that arrives. Slots are
 * reused, so a call in steady state allocates nothing here.
 *
 * <p>A slot is free when the caller has finished with the call and the call's final frame has come; whichever is last
 * frees the slot. Every request gets exactly one final frame. If the caller gives up, the slot stays taken until the
 * final frame has come, so that a late reply cannot be taken for the reply to the next call. Only one thread completes
 * a call: the event loop, or the caller while the loop has lent the socket to the caller.
 */
public final class ClientCall extends Outbound implements ReadTurn.Reader {
    /** A buffer of up to this number of bytes is not charged while its slot is free. */
    private static final int COUNTED_BYTES = 512;

    /**
     * Time after a call's deadline for which the caller's thread waits for the event loop to end the call. After that
     * the caller ends the call itself.
     */
    static final long MARGIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final long MAX_PARK_NANOS = TimeUnit.DAYS.toNanos(1);

    /**
     * If a request has waited longer than this before it is sent, its computed metadata are computed again, since a
     * token is valid for only 30 s.
     */
    private static final long OLD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final String GIVEN_UP = "the caller gave the call up";

    private static final int COMPLETED = 1;
    private static final int WIRE_DONE = 2;
    private static final int CALLER_DONE = 4;
    private static final int BOTH_DONE = WIRE_DONE | CALLER_DONE;

    /**
     * An updater and not a VarHandle: if the compare-and-set in {@link #done} throws, for example because the stack is
     * exhausted, the state must not have changed. {@link Outbox} uses an updater for the same reason.
     */
    private static final AtomicIntegerFieldUpdater<ClientCall> STATE =
            AtomicIntegerFieldUpdater.newUpdater(ClientCall.class, "state");

    public final ClientConnection connection;
    public final int slot;

    /** Next slot in the stack of free slots in {@code CallSlots}: its number plus one, or 0 if there is none. */
    int nextFree;

    /** Link of the list of slots that {@link CallSlots#trim} has taken off the stack of free slots. */
    @Nullable
    ClientCall nextTrimmed;

    /**
     * Capacity of {@link #body} that is charged to the account. It is charged when the slot becomes free, and stays
     * charged while the next call uses the buffer. Only whoever has taken the slot accesses this field.
     */
    private int keptBytes;

    /**
     * Bytes charged to the account for the buffer of a request that is not small. Released when the request has been
     * sent and the buffer is small again, when nobody waits for the call any more, or when the slot is free.
     */
    private long requestBytes;

    /**
     * Bytes charged to the account for buffers that grow because a message arrives in parts. Released when the reply's
     * slot is free, when the item is complete, or when nobody waits for the message any more.
     */
    private long replyBytes;

    /** Time at which the call was given up. It is valid only from then on until the call's final frame has come. */
    private long givenUpNanos;

    private volatile int state = BOTH_DONE;

    /**
     * {@link #serial} of a use of this slot whose caller is gone without having released the slot, because its stack or
     * memory was exhausted. The caller stores this field and then {@link CallSlots#hasOrphans}, as its last actions.
     * The value has no meaning when that use of the slot has ended.
     */
    public volatile long orphan;

    /**
     * Whether the slot has no call, but could not be given back to the stack of free slots. Like {@link #orphan}, it is
     * stored before {@link CallSlots#hasOrphans}.
     */
    public volatile boolean unreleased;

    /** Thread that blocks for the call; null if none does. Set by the caller before the call is queued. */
    private @Nullable Thread waiter;

    /**
     * The call that has this slot, if no thread blocks for it. Set by the caller before the call is queued. Null if a
     * thread blocks for the call, and when the call has ended.
     */
    private @Nullable AsyncCall async;

    /**
     * Number of uses of this slot so far. Unlike the generation, which has 16 bits, it never repeats, so a caller with
     * a finished call cannot affect the call that has the slot now. Written by the caller before the call is queued.
     */
    public long serial;

    /**
     * Message with the call's credit, while it waits for the socket behind the call's request; otherwise null. If the
     * request is taken back, this message is taken back too. Event loop only.
     */
    @Nullable
    Outbound waitingCredit;

    /** Stream that the call sends to the server; null if it sends none. */
    public @Nullable StreamSender upload;

    long deadlineNanos;

    /** Remaining time until {@code deadlineNanos} when the request was written. */
    long givenNanos;

    /**
     * Index in the request at which the field TIME begins, or at which TIME would be inserted if the request has none.
     */
    private int timeAt;

    /** Length of the field TIME in bytes; 0 if the request has no such field. */
    private int timeBytes;

    /** Metadata of the request if some of their values are computed; null otherwise. */
    private @Nullable Metadata computed;

    /** Index in the request at which {@code computed} begins. */
    private int metadataAt;

    /** Length of {@code computed} in the request, in bytes. */
    private int metadataBytes;

    /** Index in the request at which the arguments begin. */
    int argumentsAt;

    /** Index in the request after the last byte of the arguments. */
    int argumentsEnd;

    /**
     * Whether the thread that waits for this call may read the reply itself. A virtual thread may not, since it would
     * hold up the other virtual threads of its carrier.
     */
    boolean mayRead;

    // The fields from onWire to hasHandlerBegun are accessed by whoever has the ReadTurn, mostly the event loop. Before
    // the call is sent, they are accessed by the thread that has taken the slot.
    private boolean onWire;

    /**
     * Call id of this slot that was last sent to the server. The next call that is sent must have another id:
     * generations repeat, and a server that gets an id twice in a row takes that for a fault of the connection.
     */
    private int idOnWire;

    private boolean sentByCaller;
    private boolean completed;

    /** Whether the request is completely in the socket's buffer. Only from then on can the server have executed it. */
    private boolean sent;

    /**
     * Type of the message that the server is sending in PART frames: REPLY or ITEM; 0 if there is none. Set until the
     * last part has come, even if nobody waits for the message any more.
     */
    private int arriving;

    /**
     * Whether the server has sent something that it sends only after the call's handler has begun: the first part of a
     * reply in parts, an item, or credit. An error that says NOT_EXECUTED is not believed then.
     */
    private boolean hasHandlerBegun;

    /** Error with which the call has ended; null for success. Set by the event loop before it completes the call. */
    private @Nullable RPCXException error;

    public ClientCall(ClientConnection connection, int slot) {
        this.connection = connection;
        this.slot = slot;
        this.id = slot;
    }

    /** Begins a new call in this slot, with a new generation and an empty body. */
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

    /** Gives back the slot of a call that has not been queued. */
    public void dropUnsent() {
        done(BOTH_DONE);
    }

    /**
     * Frees the slot. If the slot's buffer has grown, the next call gets the larger buffer, as far as the account
     * allows. If this method throws, the slot has not been given back.
     *
     * @return whether the slot keeps a large buffer
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
     * Changes the charge for the kept buffer to the present capacity of the buffer, if the account allows that.
     *
     * @return whether the account allows it
     */
    private boolean holdKept(int bytes) {
        if (bytes != keptBytes && !connection.account.tryCharge(Resource.KEPT_BYTES, bytes - keptBytes)) {
            return false;
        }
        keptBytes = bytes;
        return true;
    }

    /**
     * Charges the account for a request that is not small. Called by the caller, before the call is queued.
     *
     * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if this client holds too many bytes of requests
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

    /** Drops the parts of a reply that have arrived, since nobody waits for the reply any more. */
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
     * Gives up the kept buffer and its charge. Called by whoever has the slot, or for a free slot that has been taken
     * off the stack of free slots.
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

    /** Sends a call that no thread blocks for. Called after {@link AsyncCall#copyFromSlot}. */
    void sendAsync(AsyncCall call) {
        async = call;
        connection.sendCall(this);
    }

    /**
     * Returns the future of the one-way call that has this slot, or had it last. Returns null if that call is not
     * one-way or has ended. Thread-safe: any thread may call this.
     */
    @Nullable
    CompletableFuture<?> oneWay() {
        return async instanceof FutureCall call ? call.oneWay() : null;
    }

    /**
     * Parks until the call is complete. Also returns if the thread is interrupted, or if the event loop has not ended
     * the call {@code MARGIN_NANOS} after its deadline. The call is cancelled in these two cases. Afterwards the caller
     * reads {@link #body} or the returned error, and then calls {@link #callerDone}.
     *
     * @return error with which the call has ended; null for success
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
     * Whether a caller waits for the call, or has its reply and has not finished with it. Thread-safe: any thread may
     * call this.
     */
    boolean hasCaller() {
        return (state & CALLER_DONE) == 0;
    }

    /**
     * Wakes the caller if the call's deadline is before {@code latestNanos}. Thread-safe: any thread may call this. A
     * caller that is woken without need parks again.
     */
    void wakeIfOverdue(long latestNanos) {
        if (deadlineNanos - latestNanos < 0) {
            wake();
        }
    }

    /**
     * Wakes the caller, whatever the call's deadline is. Thread-safe: any thread may call this. A caller that is woken
     * without need parks again.
     */
    void wake() {
        LockSupport.unpark(waiter);
    }

    /**
     * Returns the error of a call that the event loop has not ended in time: the loop is held up, and the caller waits
     * no longer.
     */
    static RPCXException unheardError() {
        return LocalFailure.unheard("no reply in time, and the event loop is held up", RPCXException.Executed.MAYBE);
    }

    /** Returns the error of a call whose caller was interrupted and waits no longer. */
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
     * Notifies the connection that the slot keeps a large buffer. The slot may have another call by now, which must not
     * end because of a failure here.
     */
    private void kept() {
        try {
            connection.onKept();
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    /**
     * Returns the number that distinguishes this use of the slot from all others. It has to be read before the call is
     * sent.
     */
    public long serial() {
        return serial;
    }

    /**
     * Ends the call because its caller gives it up. Does nothing if the call has ended or its slot has another call.
     * Thread-safe: any thread may call this.
     */
    public void cancel(long callSerial) {
        cancel(callSerial, RPCXException.Code.CANCELLED, GIVEN_UP, null);
    }

    /**
     * Ends the given call because its caller gives it up. Does nothing if that call does not have this slot. The caller
     * cannot give a serial number, since the event loop may be making another attempt. Thread-safe: any thread may call
     * this.
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
     * Ends the call with this error, for another reason than that the caller gives the call up. Does nothing if the
     * call has ended or its slot has another call. Thread-safe: any thread may call this.
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
     * Sets where the field TIME is in the request, and its length in bytes: 0 if the call has the full default time,
     * which the server knows. If the request waits for the socket, TIME is written again when sending begins, or
     * inserted if the call no longer has the full time. Called before the call is queued.
     */
    void timeAt(int index, int bytes) {
        timeAt = index;
        timeBytes = bytes;
    }

    /**
     * Sets where the metadata are in the request, and their length in bytes, if some of their values are computed.
     * Called before the call is queued.
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
     * Computes the metadata again. If the request has no space for the new metadata, or the user's code throws, the old
     * metadata are sent, and the server decides whether it accepts them.
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
     * Whether the call is on the wire: its request has been sent or waits only for the socket, and its final frame has
     * not come. A thread that sees {@code onWire} set also sees the fields that were stored before it.
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
     * Frees the slot if the caller of its call is gone without releasing it, or if it has no call, but could not be
     * given back. A caller that is gone queues nothing more. So if its call is neither on the wire nor in the queue,
     * the call was never sent, and no final frame will come.
     *
     * @return false if it is not known yet whether the call has been sent
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

    /** Returns whether a call that the server has not ended may have been executed, which its caller has to know. */
    RPCXException.Executed executed() {
        return sent || hasHandlerBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
    }

    /**
     * Throws if a message of the call has begun and is not complete. No other message of the call may begin before
     * that, since a part does not say to which message it belongs.
     */
    private void refuseWithin(String what) {
        if (arriving != 0) {
            throw new WireFault(what + " within a message in parts (expected: its last part first)");
        }
    }

    /** Handles a reply, or the first part of a reply. */
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
     * Takes the reply that the caller has read itself, while the caller has the {@link ReadTurn}.
     *
     * @return false if the caller may no longer take the reply
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
     * Handles a further part of a reply or an item. The last part of a reply is a final frame, even if nobody waits for
     * the call any more. The last part of an item is not.
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
     * Charges the bytes by which a buffer is about to grow for a part of a reply or an item.
     *
     * @return false if this client holds too many bytes; the call has ended in this case
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

    /** Whether this frame is the call's final frame. */
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

    /** Handles an item of the stream that is the call's result, or the first part of an item. */
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

    /** Whether the call has been given up, and its final frame is still to come. Event loop only. */
    boolean isOwed() {
        return seesOnWire() && completed;
    }

    /**
     * Returns the time at which the call was given up. Only for a call for which {@link #isOwed} returns true. Event
     * loop only.
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
     * Returns the same error, but with EXECUTED instead of NOT_EXECUTED: the call's handler has begun, whatever the
     * server says.
     */
    private static RPCXException ofHandler(RPCXException outcome) {
        return outcome.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(outcome.code(), outcome.getMessage(), RPCXException.Executed.EXECUTED, outcome)
                : outcome;
    }

    /**
     * Ends only this call, since a frame of it could not be handled: the codec or the user's code failed, or memory is
     * short.
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

    /** Ends the call, and sends CANCEL if its final frame is still to come. */
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

    /** Ends the call because its time is over. */
    void expire(String why) {
        expire(new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, why, executed(), null));
    }

    /**
     * Ends the call because its time has passed while the event loop was held up. That says nothing about the server.
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
     * Ends a call that the server has not ended. If no byte of its request has been sent, takes the request back, and
     * the server gets no CANCEL, since the server does not know the call.
     *
     * @return whether CANCEL has to be sent to the server
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
     * Ends the attempt whose request waits for the socket in this slot, if no byte of the request has been sent. The
     * call may then have another attempt, on another connection, since this one takes no more calls.
     */
    void endUnsent() {
        if (seesOnWire() && !isFirstFragmentWritten && !completed) {
            complete(connection.notSentError(), true);
        }
    }

    /**
     * Ends the call for its caller.
     *
     * @param isFinal whether the call ends for the wire too, since its final frame has come or will never come
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
     * Returns the encoded arguments as they were when the call was made, as long as the buffer still contains them.
     * {@link #onSent} may have shrunk the buffer. Called on the event loop only, for a call for which no thread blocks,
     * and before the slot is free.
     *
     * @return null if the buffer does not contain the arguments any more
     */
    @Nullable
    ByteBuf arguments() {
        return hasHandlerBegun || argumentsEnd > body.capacity()
                ? null
                : body.slice(argumentsAt, argumentsEnd - argumentsAt);
    }

    /**
     * Whether {@link #arguments} will still find the arguments after the request has been sent, as long as the server
     * sends nothing back for the call.
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

    /** Takes back what has not been sent of the request, and the credit that waits behind the request. */
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

    /** Message by which this side ends a call. It is queued behind the call's request. */
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

        /** Whether the slot still has the call that is to be ended. */
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
