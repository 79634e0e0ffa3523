package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
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
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A slot of a connection, and the call that uses the slot at present, with its request, its reply and its outcome. The
 * object is reused by one call after another, so that a call allocates nothing here.
 *
 * <p>The server sends exactly one final frame for each request, and nothing for the request afterwards. The slot
 * becomes free when the final frame has come and the caller is done with the call. Even a call that its caller has
 * given up keeps its slot until the final frame has come; otherwise a late reply could meet a later call with the same
 * id, since the generation in the id repeats.
 *
 * <p>Only one thread at a time can end calls: the event loop, or the caller's thread while the loop lets it read the
 * socket (see {@link ReadTurn}).
 *
 * <p>This class is long because the caller's thread, the event loop and cancelling threads change one state word, and
 * all changes of that word can be read in one place.
 */
public final class ClientCall extends Outbound implements ReadTurn.Reader {
    /**
     * Maximum size, in bytes, of a buffer that a free slot keeps without a charge. A larger buffer is charged to the
     * connection's account.
     */
    private static final int MAX_UNCOUNTED_BYTES = 512;

    /**
     * Time in nanoseconds after a call's deadline for which the caller's thread waits for the event loop to end the
     * call. After this time, the thread cancels the call and stops waiting.
     */
    static final long MARGIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final long MAX_PARK_NANOS = TimeUnit.DAYS.toNanos(1);

    /**
     * If a request has waited for the socket, and is sent more than this many nanoseconds after it was written, its
     * computed metadata are computed again. Such metadata may contain a token that is valid for only 30 s.
     */
    private static final long OLD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final int COMPLETED = 1;
    private static final int WIRE_DONE = 2;
    private static final int CALLER_DONE = 4;
    private static final int BOTH_DONE = WIRE_DONE | CALLER_DONE;

    /**
     * Changes {@link #state}. Do not use a VarHandle here. If the compare-and-set in {@link #done} throws, for example
     * because the stack is exhausted, the state must be unchanged. A VarHandle may call another method after it has
     * changed the state, and that call may throw. {@link Outbox} uses an updater for the same reason.
     */
    private static final AtomicIntegerFieldUpdater<ClientCall> STATE =
            AtomicIntegerFieldUpdater.newUpdater(ClientCall.class, "state");

    public final ClientConnection connection;
    public final int slot;

    /**
     * The index of the slot that is below this slot in the stack of free slots (see {@link CallSlots}), plus one; 0 if
     * no slot is below. The thread that releases this slot stores the field before it puts the slot on the stack. A
     * thread that pops can read the value of a later release, but its compare-and-set then fails.
     */
    int nextFree;

    /** The next slot in the list of free slots that {@link CallSlots#trim} is working on; null if there is none. */
    @Nullable
    ClientCall nextTrimmed;

    /**
     * Number of bytes that are charged for the large buffer that the slot has kept for its next call; 0 if there is
     * none. The bytes stay charged while the next call uses the buffer. Accessed only by the thread that has taken the
     * slot, or that handles the slot's call.
     */
    private int keptBytes;

    /**
     * Number of bytes that are charged for the buffer of a large request; 0 for a small request. The bytes are released
     * when the request has been sent and the buffer is small again, and at the latest when the slot becomes free or
     * this client gives the call up.
     */
    private long requestBytes;

    /**
     * Number of bytes that are charged for the parts of a reply, or of a stream's item, that have arrived. They are
     * released:
     *
     * <ul>
     *   <li>for a reply: when the slot becomes free, or earlier, when this client gives the call up;
     *   <li>for an item: when its last part comes, or when the call ends.
     * </ul>
     */
    private long replyBytes;

    /**
     * The time, by {@code nanoTime()}, at which this client gave the call up, for example at the deadline. Valid only
     * if {@link #isOwed} returns true.
     */
    private long givenUpNanos;

    /**
     * Bits that say how far the call has ended. The thread that takes the slot stores 0.
     *
     * <ul>
     *   <li>COMPLETED is set after the outcome has been stored, by the event loop or by the caller that reads the reply
     *       itself. So a caller that sees the bit sees the outcome too.
     *   <li>WIRE_DONE is set when no more frames come.
     *   <li>CALLER_DONE is set when the caller no longer needs the slot.
     * </ul>
     *
     * <p>When both WIRE_DONE and CALLER_DONE are set, the slot is freed by the thread whose compare-and-set has led to
     * this state. So no slot is freed twice. Tested by {@code CallSlotsTest.everyCallEndsAndNoReplyMeetsAnotherCaller}.
     */
    private volatile int state = BOTH_DONE;

    /**
     * The {@link #serial} of a call whose caller could not release the slot, because the caller's stack or memory was
     * exhausted. The caller first stores this number, then sets {@link CallSlots#hasOrphans}, and does nothing more.
     * The event loop then releases the slot. The number has no effect if the slot has another call.
     */
    public volatile long orphan;

    /**
     * Whether this slot has no call, but could not be put on the stack of free slots. The event loop then puts the slot
     * there. The thread that had the slot sets this field before it sets {@link CallSlots#hasOrphans}.
     */
    public volatile boolean unreleased;

    /**
     * The thread that blocks until the call has ended; null if no thread blocks. That thread sets the field before the
     * call is sent or queued, so that the event loop sees the field. The thread that frees the slot clears the field.
     * Any thread can call {@link #wake}, which may still read the thread of an earlier call. That thread then wakes
     * once without need.
     */
    private @Nullable Thread waiter;

    /**
     * The asynchronous call that uses this slot; null if there is none, or if the call has ended. A call for which a
     * thread blocks has a {@link #waiter} instead. The sending thread sets the field before the call is sent or queued,
     * and the event loop clears it when the call ends. Any thread can call {@link #oneWay}, which may read an old value
     * of this field.
     */
    private @Nullable AsyncCall async;

    /**
     * Number of calls that have used this slot, which identifies the present call. The number never repeats, so that a
     * caller whose call has ended cannot affect the slot's next call. The generation in the call id does repeat, since
     * it has only 16 bits. Written by the thread that has taken the slot, before the call is sent or queued.
     */
    public long serial;

    /**
     * The CREDIT frame of this call that waits until the first bytes of the call's request have been sent; null if
     * there is none. If the request is taken back, the CREDIT frame is taken back with it. Event loop only.
     */
    @Nullable
    Outbound waitingCredit;

    /** The stream that the call sends to the server as its argument; null if it sends none. */
    public @Nullable StreamSender upload;

    /** What gets the metadata of the reply or the error; null if nothing does. Set before the call is sent. */
    @Nullable
    Consumer<Metadata> replyListener;

    long deadlineNanos;

    /** Nanoseconds that were left until {@code deadlineNanos} when the call's request was written. */
    long givenNanos;

    /**
     * Index in the request of the field TIME, which says how much time the call has left. If the request does not have
     * the field, {@link #begins} can insert it at this index.
     */
    private int timeAt;

    /** Length in bytes of the field TIME in the request; 0 if the request has no such field. */
    private int timeBytes;

    /** The metadata of the request, if at least one value is computed when the request is written; otherwise null. */
    private @Nullable Metadata computed;

    /** Index in the request of the first byte of the metadata {@link #computed}. */
    private int metadataAt;

    /** Number of bytes of the metadata {@link #computed} in the request. */
    private int metadataBytes;

    /** Index in the request at which the arguments begin. */
    int argumentsAt;

    /** Index in the request just after the arguments. */
    int argumentsEnd;

    /**
     * Whether the thread that blocks for this call is allowed to read the reply from the socket itself. A virtual
     * thread is not, since a blocking read would hold up the other virtual threads on the same carrier thread.
     */
    boolean mayRead;

    // Until the call is sent or queued, the fields from onWire to hasHandlerBegun are written by the thread that has
    // taken the slot, and afterwards by the event loop. But while a caller has the right to read the socket (see
    // ReadTurn), this caller writes the fields of its own call, and the event loop writes only those of other calls.
    // Tested by {@code ReadTurnTest.whatComesBesideALoneCallerIsAnsweredToo}.
    private boolean onWire;

    /**
     * The id of the latest call in this slot that was sent to the server. The next call in the slot must have another
     * id, since a server treats the same id twice in a row as a fault of the connection. The generation in an id has
     * only 16 bits, so the ids of a slot repeat. If many calls in a row are not sent, the next call could therefore get
     * this id again: {@link #begin} skips it.
     */
    private int idOnWire;

    private boolean sentByCaller;
    private boolean completed;

    /**
     * Whether the complete request has been copied into a buffer for the socket, or is about to be written by the
     * caller's thread. While this field is false, the server cannot have executed the call. The first part of a long
     * reply also sets this field, since nothing more of the request is sent after that part.
     */
    private boolean sent;

    /**
     * Type of the message that is arriving in parts for this call, which is REPLY or ITEM; 0 if there is none. The type
     * stays set until the last part has come, even if nobody waits for the message any more.
     */
    private int arriving;

    /**
     * Whether a frame from the server has proved that the call's handler has begun. The first part of a long reply, an
     * item of a stream, and CREDIT prove it. An error that comes later and says NOT_EXECUTED is not believed.
     */
    private boolean hasHandlerBegun;

    /**
     * The error with which the call has ended; null if the call has succeeded. Stored before {@link #state} says that
     * the call has ended.
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
            // Generation 0 is skipped, since in slot 0 the call id would be 0, which stands for the connection itself.
            // The id that was sent last is skipped too, see idOnWire.
        } while (id == slot || id == idOnWire);
        deadlineNanos = deadline;
        clearBody();
        async = null;
        upload = null;
        replyListener = null;
        mayRead = false;
        sentByCaller = false;
        completed = false;
        sent = false;
        isFirstFragmentWritten = false;
        arriving = 0;
        hasHandlerBegun = false;
        timeBytes = 0;
        computed = null;
        // No fence is needed, since other threads find the new call only through something that is published after this
        // store. The serial is stored first, see freeIfOrphan().
        STATE.lazySet(this, 0);
    }

    /** Frees the slot of a call that was never queued for sending. */
    public void dropUnsent() {
        done(BOTH_DONE);
    }

    /**
     * Makes the slot available to the next call. Keeps a large buffer for that call if the buffer has at most
     * {@link #MAX_KEPT_BYTES}, the connection is open, and the connection's account has room for the charge. If this
     * method throws, the slot is not available yet.
     *
     * @return whether the slot has kept a large buffer
     */
    private boolean free() {
        // The references are dropped now, since it may take long until the slot has another call.
        waiter = null;
        error = null;
        upload = null;
        replyListener = null;
        computed = null;
        if (requestBytes > 0) {
            forgetRequest();
        }
        if (replyBytes > 0) {
            forgetReply();
        }
        int bytes = body.capacity();
        boolean keeps = bytes > MAX_UNCOUNTED_BYTES && keep(bytes);
        if (bytes <= MAX_UNCOUNTED_BYTES && keptBytes > 0) {
            // The large buffer is no longer charged, since a small buffer has replaced it during the call.
            forgetKept();
        }
        connection.slots.release(this);
        return keeps;
    }

    private boolean keep(int bytes) {
        if (bytes > MAX_KEPT_BYTES || connection.isClosed() || !holdKept(bytes)) {
            trim();
            shrinkBody();
            return false;
        }
        return true;
    }

    /**
     * Charges the account for the buffer that this slot keeps for its next call. The new charge replaces the charge for
     * the buffer that this slot kept before, if any.
     *
     * @param bytes capacity of the buffer
     * @return false if the account has no room for the charge; the earlier charge is unchanged in this case
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
                    "too many bytes of requests that have no reply yet (expected: fewer large ones at once)");
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
     * Gives back the large buffer that this slot has kept for its next call, and releases the charge for the buffer.
     * Called by the thread that has the slot, or that has taken the free slot off the stack.
     */
    void trim() {
        if (keptBytes > 0) {
            // The charge is released first, so that it is released even if shrinkBody() throws, because there is no
            // memory for a smaller buffer. The slot then still has the large buffer, which is charged again after its
            // next use.
            forgetKept();
            shrinkBody();
        }
    }

    // ---- the caller

    void sendBlocking() {
        Thread caller = Thread.currentThread();
        waiter = caller;
        // A thread that also sends a stream does not read the reply from the socket itself, since the thread has more
        // to do than to wait for the reply.
        mayRead = upload == null && !ThreadTools.isVirtual(caller);
        connection.sendCall(this);
    }

    /** Sends a call for which no thread blocks. {@link AsyncCall#copyFromSlot} must have run before. */
    void sendAsync(AsyncCall call) {
        async = call;
        connection.sendCall(this);
    }

    /**
     * Returns the future of the call in this slot if the call is one-way and has not ended; otherwise null.
     * Thread-safe.
     */
    @Nullable
    CompletableFuture<?> oneWay() {
        return async instanceof FutureCall call ? call.oneWay() : null;
    }

    /**
     * Blocks the calling thread until the call has ended. If the thread is interrupted, or if the event loop has not
     * ended the call {@code MARGIN_NANOS} after its deadline, this method cancels the call and returns an error. The
     * caller then reads {@link #body} or the returned error, and after that has to call {@link #callerDone}.
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
                return ClientCallErrors.unheard();
            }
            if (Thread.currentThread().isInterrupted() && !isCompleted()) {
                cancel(serial);
                return ClientCallErrors.interrupted(RPCXException.Executed.MAYBE);
            }
        }
        return error;
    }

    private void park() {
        boolean isLookedAfter = connection.overdueCallers.lookAfterCallers();
        // The method above can wait for a lock, and a thread that waits for a lock uses up the wake-up of a call that
        // ends meanwhile. So the state is checked again here, and nothing may block between this check and the park.
        if (isCompleted()) {
            return;
        }
        if (isLookedAfter) {
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
     * Returns whether this slot has a call whose caller is not done with the call: the caller still writes the request,
     * waits for the reply or reads the reply. Thread-safe.
     */
    boolean hasCaller() {
        return (state & CALLER_DONE) == 0;
    }

    /**
     * Wakes the thread that blocks for the call if the call's deadline was before the given time. If the call has not
     * ended by then, the woken thread checks for itself whether it has to go on waiting. Thread-safe.
     */
    void wakeIfOverdue(long latestNanos) {
        if (deadlineNanos - latestNanos < 0) {
            wake();
        }
    }

    /**
     * Wakes the thread that blocks for the call, if there is one. If the call has not ended, the thread checks whether
     * it has to go on waiting. Thread-safe.
     */
    void wake() {
        LockSupport.unpark(waiter);
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
     * Notifies the connection that this slot has kept a large buffer. This method never throws, because the slot may
     * already have its next call. A failure here must not end that call.
     */
    private void kept() {
        try {
            connection.onKept();
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    /**
     * Returns the number that identifies the call which uses this slot at present. Read the number before the call is
     * sent, since the slot may have another call afterwards.
     */
    public long serial() {
        return serial;
    }

    /**
     * Ends a call because its caller gives it up. Does nothing if the call has ended already. Thread-safe.
     *
     * @param callSerial {@link #serial} of the call
     */
    public void cancel(long callSerial) {
        cancel(callSerial, RPCXException.Code.CANCELLED, ClientCallErrors.GIVEN_UP, null);
    }

    /**
     * Ends a call because its caller gives it up. Does nothing if the call does not use this slot any more. The call is
     * identified by its object and not by its {@link #serial}, because the event loop may be making another attempt,
     * which changes the call's serial. Thread-safe.
     */
    public void cancel(AsyncCall of) {
        connection.send(new Cancel(this, RPCXException.Code.CANCELLED, ClientCallErrors.GIVEN_UP, null) {
            @Override
            boolean isThere() {
                return isOnWire(of);
            }
        });
    }

    /**
     * Ends a call with an error that has the given code, text and cause. Does nothing if the call has ended already.
     * Thread-safe.
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
        // While the socket takes no bytes, the request is held back from the socket's queue, so that the request can
        // still be taken back.
        holdUntilWritable = connection.isSocketBusy();
        connection.countSent(deadlineNanos);
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
                // The buffer is given up to save memory. A notice keeps its buffer, since another attempt may need the
                // arguments of the notice.
                trim();
                shrinkBody();
            }
            if (body.capacity() <= MAX_SMALL_BYTES) {
                // A small buffer is no longer charged as a request. A larger buffer stays charged as long as this call
                // has it.
                forgetRequest();
            }
        }
    }

    /**
     * Sets where the field TIME is in the request. The field says how much time the call has left. A request can do
     * without the field if its call has about the full default time. Called before the call is queued for sending.
     *
     * <p>If the request waits for the socket, {@link #begins} is called after the wait. If the request has the field,
     * {@code begins} writes the field again, with the time that is then left. If the request does not have the field,
     * and the call no longer has about the full default time, {@code begins} inserts the field.
     *
     * @param index index in the request of the first byte of the field; if the request does not have the field, index
     *     at which {@code begins} can insert the field
     * @param bytes length of the field in bytes; 0 if the request does not have the field
     */
    void timeAt(int index, int bytes) {
        timeAt = index;
        timeBytes = bytes;
    }

    /**
     * Sets where the metadata are in the request. Called only if at least one value of the metadata is computed when
     * the request is written. If the request then waits long for the socket, {@link #begins} computes the metadata
     * again. Called before the call is queued for sending.
     *
     * @param index index in the request at which the metadata begin
     * @param bytes length of the metadata in the request, in bytes
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
     * Computes the metadata again, and writes the new metadata into the request. If this fails, or if the new metadata
     * do not fit, the old metadata are sent, and the server decides whether it accepts them.
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
        // A thread that sees onWire set also sees the stores above, because of this fence and the acquire fence in
        // seesOnWire().
        VarHandle.releaseFence();
        onWire = true;
        // The stores above have to be visible before the first byte is sent, since the event loop may see the reply at
        // once. If the event loop did not see them, it would drop the reply. The other half of this order is the fence
        // in ClientConnection.beforeRead(). Tested by
        // {@code WriteTurnTest.threadsAndLoopShareASocketAndNoReplyIsLostOrAnothers}.
        VarHandle.fullFence();
        return true;
    }

    @Override
    public void onDropped() {
        complete(connection.notSentError(), true);
    }

    /**
     * Returns whether the server may still send something for this call. That is so if the request has been sent, or
     * waits for the socket, and the call's final frame has not come. It is not so while the request is still in the
     * queue of messages to send. If the result is true, the calling thread also sees all fields that were stored before
     * {@code onWire}.
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
     * Releases this slot if its caller could not, because the caller's stack or memory was exhausted. If the call has
     * been sent, the slot becomes free when the server's final frame for the call has come. If the call is neither sent
     * nor queued, it will never be sent, because its caller does nothing more. So the slot becomes free at once.
     *
     * @return false if the call may still be in the queue of messages to send, so that this method has to be called
     *     again later
     */
    boolean freeIfOrphan() {
        if (unreleased) {
            unreleased = false;
            state = 0;
            done(BOTH_DONE);
            return true;
        }
        long gone = orphan;
        // The state is read before the serial, since begin(), on the thread that takes the slot, stores the serial
        // first. If this is already the state of a later call, the serial that is read below is also that of a later
        // call, and is not equal to gone. Otherwise the event loop could release the slot of the later call.
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
     * Returns MAYBE if the server may have executed the call, otherwise NOT_EXECUTED. Call this method only for a call
     * that the server has not ended.
     */
    RPCXException.Executed executed() {
        return sent || hasHandlerBegun ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
    }

    /**
     * Throws if the server begins a message of this call while another message of the call is incomplete. Messages must
     * not overlap, since a part does not say to which message it belongs.
     *
     * @param what name of the message that begins, for the text of the error
     */
    private void refuseWithin(String what) {
        if (arriving != 0) {
            throw new WireFault(what + " within a message in parts (expected: its last part first)");
        }
    }

    /**
     * Passes the metadata of the reply or the error to the caller's listener, before the call ends. Nobody gets the
     * metadata of a call that has been given up.
     */
    void onMetadata(Metadata metadata) {
        Consumer<Metadata> listener = replyListener;
        if (completed || listener == null) {
            return;
        }
        try {
            listener.accept(metadata);
        } catch (Throwable e) {
            CallbackFailures.log(e);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Handles the reply to the call, or the first part of a long reply.
     *
     * @param more whether further parts of the reply follow
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
                // The rest of the request is not sent, since the server wants no more of it, and the reply needs the
                // buffer that holds the request.
                recall();
                sent = true;
            }
            // The stream that the call sends ends here, since the server wants no more of it. No item and no END is
            // sent for the call from now on.
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
            // The event loop will read the same bytes and handle the fault.
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
     * after which the server sends nothing for the call. The last part of an item is not a final frame.
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
            // The item is complete and belongs to its subscriber from now on, so its memory is no longer charged.
            arriving = 0;
            if (replyBytes > 0) {
                forgetReply();
            }
        }
        if (stream != null && stream.isReceiving() && !stream.onPart(payload, more, maxBytes)) {
            end(ClientCallErrors.largeMessage("an item", maxBytes), false);
        }
    }

    private void onReplyPart(ByteBuf payload, boolean more, int maxBytes) {
        if (body.readableBytes() + payload.readableBytes() > maxBytes) {
            end(ClientCallErrors.largeMessage("a result", maxBytes), !more);
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
     * does not allow the charge, the call ends.
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
     * Returns whether a frame is the call's final frame, after which the server sends nothing more for the call.
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

    private @Nullable StreamReceiver stream() {
        AsyncCall waiting = async;
        return waiting == null ? null : waiting.receiver();
    }

    /**
     * Handles an item of the stream that the call returns, or the first part of a long item.
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
     * Returns whether this client has given the call up, for example at the deadline, and the server has not sent the
     * call's final frame yet. Event loop only.
     */
    boolean isOwed() {
        return seesOnWire() && completed;
    }

    /**
     * Returns the time, by {@code nanoTime()}, at which this client gave the call up. Call this method only if
     * {@link #isOwed} returns true. Event loop only.
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
     * Replaces NOT_EXECUTED by EXECUTED in an error from the server, since the call's handler is known to have begun.
     * Any other error is returned unchanged.
     */
    private static RPCXException ofHandler(RPCXException outcome) {
        return outcome.executed() == RPCXException.Executed.NOT_EXECUTED
                ? ClientCallErrors.withExecuted(outcome, RPCXException.Executed.EXECUTED)
                : outcome;
    }

    /**
     * Ends this call because one of its frames could not be handled. The reason is that the decoding or the user's code
     * has failed, or that memory is short. The connection and its other calls go on.
     *
     * @param type type of the frame
     * @param more whether further parts of the same message follow
     */
    void onFailure(int type, boolean more, Throwable failure) {
        end(
                failure instanceof OutOfMemoryError
                        ? LocalFailure.noRoom("no memory is left for a frame from the server")
                        : ClientCallErrors.unhandledFrame(
                                failure,
                                type == Wire.CREDIT ? RPCXException.Executed.MAYBE : RPCXException.Executed.EXECUTED),
                isFinal(type, more));
    }

    /**
     * Ends the call with an error. Also sends CANCEL to the server, unless the server has sent the call's final frame
     * or the call had already ended.
     *
     * @param isFinal whether the frame that is being handled is the call's final frame
     */
    private void end(RPCXException outcome, boolean isFinal) {
        boolean sendsCancel = !isFinal && !completed;
        int callId = id;
        if (sendsCancel && !sent) {
            // The rest of the request is not sent. This happens only if the server is broken: before it had the
            // complete request, it has sent a frame that is not the final frame.
            recall();
        }
        complete(outcome, isFinal);
        if (sendsCancel) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /** Ends the call with DEADLINE_EXCEEDED, because its deadline has passed. */
    void expire(String peer) {
        expire(ClientCallErrors.noReply(peer, executed()));
    }

    /**
     * Ends the call because its deadline has passed while this client's event loop was held up. The end of the call
     * does not count as a failure of the server.
     *
     * @param lateNanos time in nanoseconds by which the event loop was late
     */
    void expireUnheard(String peer, long lateNanos) {
        expire(ClientCallErrors.noReplyWhileHeldUp(peer, lateNanos, executed()));
    }

    private void expire(RPCXException outcome) {
        int callId = id;
        if (giveUp(outcome)) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /**
     * Ends a call that the server has not ended yet. If no byte of the call's request has been sent, the request is
     * taken back, and the server never learns of the call.
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
     * calls, so that another attempt can use another connection.
     */
    void endUnsent() {
        if (seesOnWire() && !isFirstFragmentWritten && !completed) {
            complete(connection.notSentError(), true);
        }
    }

    /**
     * Ends the call for its caller, who gets the error, or the reply in {@link #body}.
     *
     * @param outcome error with which the call ends; null if the call has succeeded
     * @param isFinal whether the server will send nothing more for the call
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
        // The caller's thread is read before the state changes, since the slot may have another caller after that.
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
                    // The parts of the reply are dropped, since nobody will read them and the last part may never come.
                    forgetParts();
                }
                if (requestBytes > 0) {
                    // The charge for the request is released now, since the call's final frame may never come.
                    trim();
                    shrinkBody();
                    forgetRequest();
                }
            }
            endUpload();
            if (call != null && arriving == Wire.ITEM && replyBytes > 0) {
                // The parts of the item are no longer charged, since the receiver drops them when the stream ends.
                forgetReply();
            }
        } finally {
            // The caller is told of the end even if a step above has thrown, for example for lack of memory, since
            // nobody else ends the call.
            end(call, caller, bits, outcome);
        }
    }

    /**
     * Returns the encoded arguments of the call, so that another attempt can send them again. Call this method only for
     * an asynchronous call, on the event loop, and before the slot is free.
     *
     * @return null if the buffer does not have the arguments any more, for example because {@link #onSent} has shrunk
     *     the buffer
     */
    @Nullable
    ByteBuf arguments() {
        return hasHandlerBegun || argumentsEnd > body.capacity()
                ? null
                : body.slice(argumentsAt, argumentsEnd - argumentsAt);
    }

    /**
     * Returns whether {@link #arguments} will still return the arguments of a one-way call after the request has been
     * sent. Even then, {@code arguments} returns null as soon as a frame from the server has proved that the handler
     * has begun. An ERROR frame does not prove that.
     */
    boolean keepsArguments() {
        return body.capacity() <= MAX_KEPT_BYTES;
    }

    private void beforeSlotRelease(AsyncCall call, RPCXException outcome) {
        try {
            call.beforeSlotRelease(this, outcome);
        } catch (Throwable noMemory) {
            // The failure is only reported, since the call ends in any case.
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
        // Each step runs even if the step before it fails, so that the caller is told of the end in any case.
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
                // sender.cancel() also cancels the subscription to the user's publisher. A failure is only logged,
                // since the stream that the call sends is over in any case.
                CallbackFailures.log(e);
            }
        }
    }

    /**
     * Takes back the part of the request that has not been sent, and the CREDIT frame that waits behind the request.
     */
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
     * A CANCEL message, by which this client ends a call. The message is queued behind the call's request. When the
     * message leaves the queue, the part of the request that has not been sent is taken back. If no byte of the request
     * has been sent, the server gets neither the request nor CANCEL.
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

        /** Returns whether the slot still has the call that this CANCEL message has to end. */
        abstract boolean isThere();

        @Override
        public boolean beforeSend() {
            if (!isThere() || call.completed) {
                return false;
            }
            id = call.id;
            return call.giveUp(ClientCallErrors.givenUp(code, why, call.executed(), cause));
        }

        @Override
        public void onSent() {}

        @Override
        public void onDropped() {}
    }
}
