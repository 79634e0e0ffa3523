package dev.rpcx;

import dev.rpcx.codec.HeapArray;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * One slot of a connection: the call that has it, its request going out, its reply coming in. Used again and again, so
 * that a call in steady state allocates nothing here.
 *
 * <p>Two parties have to be done with it before it is free: the wire, which owes every request exactly one final frame,
 * and the caller. A caller that gives up leaves the slot taken until the final frame, so no late reply can meet the
 * next call. Whoever of the two comes second frees the slot. Only the event loop completes a call, or the caller while
 * the loop has lent it the socket, so outcomes never race each other.
 */
final class ClientCall extends Outbound implements ReadTurn.Reader {
    /** A buffer up to this is not counted while its slot is free: there can be as many as there are slots. */
    private static final int COUNTED_BYTES = 512;

    /**
     * The event loop ends calls whose time is over. Should it not, its thread waits so much longer, and then ends the
     * call itself.
     */
    static final long MARGIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final long MAX_PARK_NANOS = TimeUnit.DAYS.toNanos(1);

    /**
     * What was computed for a request is computed again where that has waited for longer until it leaves: a token is
     * good for 30 s, which the request needs for its way too.
     */
    private static final long OLD_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final String GIVEN_UP = "the caller gave the call up";

    private static final int COMPLETED = 1;
    private static final int WIRE_DONE = 2;
    private static final int CALLER_DONE = 4;
    private static final int BOTH_DONE = WIRE_DONE | CALLER_DONE;

    /** Not a VarHandle, as in {@link Outbox}: what {@link #done} throws has changed nothing. */
    private static final AtomicIntegerFieldUpdater<ClientCall> STATE =
            AtomicIntegerFieldUpdater.newUpdater(ClientCall.class, "state");

    final ClientConnection connection;
    final int slot;

    /** Link of the free list. */
    int nextFree;

    /** Link of those that {@link CallSlots#trim} has in hand. */
    @Nullable
    ClientCall nextTrimmed;

    /**
     * Capacity of {@link #body} that the account has been charged for since the slot was last free, and while the next
     * call uses it; whoever has taken the slot owns it.
     */
    private int keptBytes;

    /**
     * Bytes that the account has been charged for the buffer of a request that is not small: until that has left and
     * the buffer is small again, or nobody waits for the call, or the slot is free.
     */
    private long requestBytes;

    /**
     * Bytes by which buffers have grown for what comes in parts, which the account has been charged for: for a reply
     * from its first part until the slot is free, for an item until it is whole or nobody waits for it.
     */
    private long replyBytes;

    /** When the call was given up; it means something only while the call's final frame is owed. */
    private long givenUpNanos;

    private volatile int state = BOTH_DONE;

    /**
     * The {@link #serial} of a use of this slot whose caller has gone without saying so, as its stack or memory was at
     * its end: the last that such a caller does is to store this, and {@link CallSlots#hasOrphans} after it. It means
     * nothing once that use is over, so it may be stored too often.
     */
    volatile long orphan;

    /** Whoever had the slot to itself could not give it back: set as {@link #orphan} is. */
    volatile boolean unreleased;

    // set by the caller before the call is queued
    private @Nullable Thread waiter;
    private @Nullable AsyncCall async;

    /**
     * Uses of this slot so far. Unlike the 16 bits of a generation it never comes back, so that whoever kept a finished
     * call can do nothing to the one that has its slot now. Written by the caller before the call is queued.
     */
    long serial;

    /**
     * Its credit that waits behind its request for the socket, and means nothing without that. Event loop only.
     */
    @Nullable
    Outbound waitingCredit;

    /** The stream that the call takes to the server, if it takes one. */
    @Nullable
    StreamSender upload;

    long deadlineNanos;

    /** What was left until then when the request was written. */
    long givenNanos;

    /** Index of the time in the request, and its bytes: 0 where it is not told. */
    private int timeAt;

    private int timeBytes;

    /** As {@link #timeAt} for metadata with values that are computed; null for all others. */
    private @Nullable Metadata computed;

    private int metadataAt;
    private int metadataBytes;

    /** Where the arguments stand in the request: from this index to the other one. */
    int argumentsAt;

    int argumentsEnd;

    /**
     * The thread that waits for this call may read the reply itself: a virtual one would hold up the others of its
     * carrier.
     */
    boolean mayRead;

    // of whoever has the ReadTurn, which is mostly the event loop; before, of the thread that sends the call itself, if
    // one does
    private boolean onWire;

    /**
     * The call id that the server has had of this slot last. As many calls as there are generations may end before they
     * leave, and the server takes the same one twice running for a fault of the connection.
     */
    private int idOnWire;

    private boolean sentHere;
    private boolean completed;

    /** The whole request stands in the socket's buffer: only from then on can the server have executed it. */
    private boolean sent;

    /**
     * Type of the message that the server has begun and goes on with in PART frames, REPLY or ITEM; 0 for none.
     * Followed to its end.
     */
    private int arriving;

    /**
     * The server has sent what only a handler that has begun brings, so an error that says otherwise is not believed.
     */
    private boolean hasBegunThere;

    // set by the event loop before it completes the call
    private @Nullable RPCXException error;

    ClientCall(ClientConnection connection, int slot) {
        this.connection = connection;
        this.slot = slot;
        this.id = slot;
    }

    /** Takes the slot for a new call: a new generation, an empty body. */
    void begin(long deadline) {
        serial++;
        do {
            id += Wire.SLOT_MASK + 1;
            // generation 0 is never used: call id 0 is the connection's own
        } while (id == slot || id == idOnWire);
        deadlineNanos = deadline;
        clearBody();
        async = null;
        upload = null;
        mayRead = false;
        sentHere = false;
        completed = false;
        sent = false;
        begun = false;
        arriving = 0;
        hasBegunThere = false;
        timeBytes = 0;
        computed = null;
        // without a fence: whoever learns of this use of the slot is told behind it
        STATE.lazySet(this, 0);
    }

    /** Gives the slot back before the call was queued. */
    void dropUnsent() {
        done(BOTH_DONE);
    }

    /**
     * Nobody uses the slot now. What its buffer has grown to for one call is kept for the next one as far as the
     * account allows. What this throws has not given the slot back.
     *
     * @return whether it is a large one
     */
    private boolean free() {
        // a slot may have no other call for long
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
            // what was kept has been given up on the way
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

    /** What was kept before is charged already, and a buffer that is kept never shrinks. */
    private boolean holdKept(int bytes) {
        if (bytes != keptBytes && !connection.account.take(Resource.KEPT_BYTES, bytes - keptBytes)) {
            return false;
        }
        keptBytes = bytes;
        return true;
    }

    /**
     * Charges a request that is not small. By the caller, before the call is queued.
     *
     * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if this client holds too much of them
     */
    void holdRequest(long bytes) {
        if (!connection.account.take(Resource.REQUEST_BYTES, bytes)) {
            throw RPCXException.refused(
                    RPCXException.Code.OVERLOADED,
                    "too many bytes of requests under way (expected: fewer large ones at once)");
        }
        requestBytes = bytes;
    }

    private void forgetRequest() {
        connection.account.give(Resource.REQUEST_BYTES, requestBytes);
        requestBytes = 0;
    }

    private void forgetReply() {
        connection.account.give(Resource.REPLY_BYTES, replyBytes);
        replyBytes = 0;
    }

    /** What has come of a reply is not kept: nobody waits for it any more. */
    private void forgetParts() {
        trim();
        shrinkBody();
        forgetReply();
    }

    private void forgetKept() {
        connection.account.give(Resource.KEPT_BYTES, keptBytes);
        keptBytes = 0;
    }

    /** Gives the buffer back of a slot that is free and has been taken off the list for that. */
    void trim() {
        if (keptBytes > 0) {
            // first: where there is no memory for a smaller buffer this one is charged again when its next use is over
            forgetKept();
            shrinkBody();
        }
    }

    // ---- the caller

    void sendBlocking() {
        Thread caller = Thread.currentThread();
        waiter = caller;
        // with a stream to send there is more to do than to wait for the reply
        mayRead = upload == null && !ThreadTools.isVirtual(caller);
        connection.sendCall(this);
    }

    /** Behind {@link AsyncCall#sentWith}. */
    void sendAsync(AsyncCall call) {
        async = call;
        connection.sendCall(this);
    }

    /**
     * The future of the one-way call that has this slot, or has had it last; null if it was none, or has ended. From
     * any thread.
     */
    @Nullable
    CompletableFuture<?> oneWay() {
        return async instanceof ClientMethod.Async call ? call.oneWay() : null;
    }

    /**
     * Parks until the call is complete. Afterwards the caller reads {@link #body} or {@link #error}, and then calls
     * {@link #callerDone}.
     */
    @Nullable
    RPCXException await() {
        if (sentHere && mayRead && !isCompleted()) {
            connection.readTurn.read(this);
        }
        while (!isCompleted()) {
            park();
            if (!isCompleted() && connection.nanoTime() - deadlineNanos > MARGIN_NANOS) {
                cancel(serial);
                return withoutAWord();
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

    /** Whether somebody waits for the call, or has its reply and is not done with it. From any thread. */
    boolean hasCaller() {
        return (state & CALLER_DONE) == 0;
    }

    /** From any thread: a caller that is woken for nothing parks again. */
    void wakeIfOverdue(long latestNanos) {
        if (deadlineNanos - latestNanos < 0) {
            wake();
        }
    }

    /** As {@link #wakeIfOverdue}. */
    void wake() {
        LockSupport.unpark(waiter);
    }

    /** The end of a call that the event loop has not ended in its time: it is held up, and the caller waits no longer. */
    static RPCXException withoutAWord() {
        return OwnEnd.unheard("no reply in time, and no word from the event loop", RPCXException.Executed.MAYBE);
    }

    /** The end of a call whose caller waits no longer. */
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

    /** The slot may be another call's already: what fails here must not end that. */
    private void kept() {
        try {
            connection.onKept();
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    /** Tells this use of the slot from all others; to be asked for before the call is sent. */
    long serial() {
        return serial;
    }

    /**
     * Ends the call at the caller's wish, from any thread; nothing happens if it is over or its slot has another call.
     */
    void cancel(long callSerial) {
        cancel(callSerial, RPCXException.Code.CANCELLED, GIVEN_UP, null);
    }

    /**
     * The same for the call that is told of its end there, whichever use of the slot it has: whoever gives it up cannot
     * know which, while the event loop may be trying it again.
     */
    void cancel(AsyncCall of) {
        connection.send(new Cancel(this, RPCXException.Code.CANCELLED, GIVEN_UP, null) {
            @Override
            boolean isThere() {
                return isOnWire(of);
            }
        });
    }

    /** Ends the call for another reason of this side. */
    void cancel(long callSerial, RPCXException.Code code, String why, @Nullable Throwable cause) {
        connection.send(new Cancel(this, code, why, cause) {
            @Override
            boolean isThere() {
                return isOnWire(callSerial);
            }
        });
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
        // what its peer does not read waits here, where it can be taken back, and not in the socket's queue
        waits = connection.isSocketBusy();
        connection.watch(deadlineNanos);
        return true;
    }

    @Override
    void left() {
        idOnWire = id;
        begun = true;
        sent = true;
        clearBody();
        if (requestBytes > 0) {
            if (connection.keepsMuch() && (head & Wire.TYPE_MASK) != Wire.NOTICE) {
                // of a notice alone the arguments may be sent again
                trim();
                shrinkBody();
            }
            if (body.capacity() <= SMALL_BYTES) {
                // one that is kept for the next call is charged as long as this one has it
                forgetRequest();
            }
        }
    }

    /**
     * The request has so many bytes for its time, which is to be what is left when it leaves if it has to wait for
     * that; 0 if it is the full time that the server knows. Before the call is queued.
     */
    void timeAt(int index, int bytes) {
        timeAt = index;
        timeBytes = bytes;
    }

    /** As {@link #timeAt}: the same for its metadata. */
    void metadataAt(Metadata metadata, int index, int bytes) {
        computed = metadata;
        metadataAt = index;
        metadataBytes = bytes;
    }

    @Override
    void begins() {
        idOnWire = id;
        long left = deadlineNanos - connection.nanoTime();
        long micros = Math.max(1, TimeUnit.NANOSECONDS.toMicros(left));
        if (timeBytes > 0) {
            Varint.writePadded(body, timeAt, timeBytes, micros);
        } else if (connection.isTold(left)) {
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
     * Where there is no room for it, or the user's code throws, what was computed before leaves, and the server judges
     * it.
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
    public boolean leavesHere() {
        if (!connection.enter()) {
            return false;
        }
        body.clear();
        sentHere = true;
        begun = true;
        sent = true;
        idOnWire = id;
        // seesOnWire() has the other half
        VarHandle.releaseFence();
        onWire = true;
        // before the first byte leaves: the event loop learns of this call from the reply
        VarHandle.fullFence();
        return true;
    }

    @Override
    void lost() {
        complete(connection.leftError(), true);
    }

    /**
     * Whether the call is on the wire. A thread that sends its call itself sets the rest before: behind a look that sees
     * the one, all looks see the other.
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
     * Says for a caller that could not that it has gone, or gives the slot back for whoever had it and could not. What
     * such a caller has queued it has queued before it went; a call that is neither on the wire nor in the queue by now
     * has never been sent, and the wire owes it nothing.
     *
     * @return false if that cannot be known yet
     */
    boolean freeIfOrphan() {
        if (unreleased) {
            unreleased = false;
            state = 0;
            done(BOTH_DONE);
            return true;
        }
        long gone = orphan;
        // before the serial: while the state is that of a later use, so is the serial
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

    /** What a caller has to know of a call that ends without the server's word. */
    RPCXException.Executed executed() {
        return sent || hasBegunThere ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
    }

    /** Messages of one call do not mix: else a part would not say of which it is. */
    private void refuseWithin(String what) {
        if (arriving != 0) {
            throw new WireFault(what + " within a message in parts (expected: its last part first)");
        }
    }

    /** A reply, or its first part. */
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
            hasBegunThere = true;
            if (!sent) {
                // the server wants no more of the request, and its reply needs the room
                recall();
                sent = true;
            }
            // nor more of the stream: behind this frame nothing but a CANCEL is sent for the call
            endUpload();
            body.clear();
            if (hold(HeapArray.growth(body, payload.readableBytes()), false)) {
                HeapArray.grow(body, payload.readableBytes());
                body.writeBytes(payload);
            }
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

    @Override
    public boolean takes(ByteBuf arrived) {
        try {
            return WireConnection.enterFrame(arrived, Wire.REPLY, id) && onOwnReply(arrived);
        } catch (WireFault fault) {
            // the loop finds the same
            return false;
        }
    }

    /** The reply, read by the caller, who has the {@link ReadTurn}. @return false if it is not its any more */
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

    /** More of a reply or an item. Only the last part of a reply is a final frame, also when nobody waits any more. */
    void onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (arriving == 0) {
            throw new WireFault("a part of a message that has no beginning");
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
            // whole: what it takes from here on is its subscriber's
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
     * Charges what a buffer is about to grow by for a part of a reply or an item.
     *
     * @return false if this client holds too much; the call has ended then
     */
    private boolean hold(long bytes, boolean isFinal) {
        if (bytes == 0) {
            return true;
        }
        if (connection.account.take(Resource.REPLY_BYTES, bytes)) {
            replyBytes += bytes;
            return true;
        }
        end(
                OwnEnd.noRoom("too many bytes of replies and items on their way to this client"
                        + " (expected: fewer calls with large results at once)"),
                isFinal);
        return false;
    }

    /** Whether this frame is the last word of the server on this call. */
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

    /** An item of the stream that the call brings, or its first part. */
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
        hasBegunThere = true;
        java.util.Objects.requireNonNull(async).arrived();
        if (more) {
            arriving = Wire.ITEM;
            if (!hold(stream.growth(payload.readableBytes()), false)) {
                return;
            }
        }
        stream.onItem(payload, more);
    }

    /** Says whether the call has been given up, and its final frame is still to come. Event loop only. */
    boolean isOwed() {
        return seesOnWire() && completed;
    }

    /** When the call was given up; for a call whose final frame is owed. Event loop only. */
    long givenUpNanos() {
        return givenUpNanos;
    }

    void onCredit(ByteBuf payload) {
        if (completed) {
            return;
        }
        long items = Streams.credit(payload);
        hasBegunThere = true;
        StreamSender sender = upload;
        if (sender != null) {
            sender.onCredit(items);
        }
    }

    void onError(RPCXException outcome) {
        complete(hasBegunThere && !completed ? ofHandler(outcome) : outcome, true);
    }

    /** The same end of a call whose handler has begun, whatever the server says of that. */
    private static RPCXException ofHandler(RPCXException outcome) {
        return outcome.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(outcome.code(), outcome.getMessage(), RPCXException.Executed.EXECUTED, outcome)
                : outcome;
    }

    /**
     * A frame could not be taken, because of the codec, the user's own code or the memory: the end of this call and of
     * no other.
     */
    void onFailure(int type, boolean more, Throwable failure) {
        end(
                failure instanceof OutOfMemoryError
                        ? OwnEnd.noRoom("no memory is left for what came back")
                        : new RPCXException(
                                RPCXException.Code.INVALID,
                                "what came back cannot be taken: " + ThrowableText.words(failure),
                                type == Wire.CREDIT ? RPCXException.Executed.MAYBE : RPCXException.Executed.EXECUTED,
                                failure),
                isFinal(type, more));
    }

    /** Ends the call, and tells the server that nobody waits if its final frame is still to come. */
    private void end(RPCXException outcome, boolean isFinal) {
        boolean tells = !isFinal && !completed;
        int callId = id;
        if (tells && !sent) {
            // what a broken server sends before it has the request
            recall();
        }
        complete(outcome, isFinal);
        if (tells) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /** Its time is over. */
    void expire(String why) {
        expire(new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, why, executed(), null));
    }

    /** Its time has gone by while the event loop was held up, which says nothing of the server. */
    void expireUnheard(String why) {
        expire(OwnEnd.unheard(why, executed()));
    }

    private void expire(RPCXException outcome) {
        int callId = id;
        if (giveUp(outcome)) {
            connection.sendNow(Wire.CANCEL, callId);
        }
    }

    /**
     * Ends a call that the server has not ended. A request of which no byte has left is taken back, and that is its end
     * for the wire too: the server has never heard of it, and will not answer a CANCEL.
     *
     * @return whether the server has to be told
     */
    private boolean giveUp(RPCXException outcome) {
        boolean seen = begun;
        if (!sent) {
            recall();
        }
        complete(outcome, !seen);
        return seen;
    }

    /** The connection takes no more calls: a request that waits for its turn goes to another one. */
    void leaveUnsent() {
        if (seesOnWire() && !begun && !completed) {
            complete(connection.leftError(), true);
        }
    }

    /** Ends the call for its caller; with {@code isFinal} for the wire too. */
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
                losesSlot(call, outcome);
            }
            async = null;
        }
        // read first: once the state says so the slot may be another caller's
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
                    // its last part may never come, and nobody reads it
                    forgetParts();
                }
                if (requestBytes > 0) {
                    // its final frame may never come either
                    trim();
                    shrinkBody();
                    forgetRequest();
                }
            }
            endUpload();
            if (call != null && arriving == Wire.ITEM && replyBytes > 0) {
                // the receiver drops the item's parts when it is told of the end
                forgetReply();
            }
        } finally {
            // also where the memory is at its end, and what has been called fails: nobody else will end the call
            end(call, caller, bits, outcome);
        }
    }

    /**
     * The arguments as they were when the call was made. The buffer has them also behind {@link #left}, which makes it
     * smaller or sets its indices, until something else is written there. Event loop only, for a call that nobody
     * blocks for, until the slot is free.
     *
     * @return null if they are not there any more
     */
    @Nullable
    ByteBuf arguments() {
        return hasBegunThere || argumentsEnd > body.capacity()
                ? null
                : body.slice(argumentsAt, argumentsEnd - argumentsAt);
    }

    /** Whether {@link #arguments} has them for as long as nothing comes back, also when the request has left. */
    boolean keepsArguments() {
        return body.capacity() <= KEPT_BYTES;
    }

    private void losesSlot(AsyncCall call, RPCXException outcome) {
        try {
            call.losesSlot(this, outcome);
        } catch (Throwable noMemory) {
            // the call ends all the same
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
        RPCXException failure = ClientMethod.UNREADABLE;
        try {
            endUpload();
            value = call.decode(reply);
            failure = null;
        } catch (RPCXException e) {
            failure = e;
        } catch (Throwable e) {
            failure = ClientMethod.unreadable(e);
        } finally {
            endAsync(call, value, failure);
        }
    }

    private void endAsync(AsyncCall call, @Nullable Object value, @Nullable RPCXException failure) {
        // as in complete()
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
                // the user's subscription: the call is over in any case
                CallbackFailures.log(e);
            }
        }
    }

    /** No more of it leaves, nor of what waits for it. */
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
            connection.onFinal(sentHere);
        }
        return WIRE_DONE;
    }

    /** A wish of this side to end a call, in the queue behind the call's request. */
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

        /** Whether the slot still has the call that is meant. */
        abstract boolean isThere();

        @Override
        boolean leaving() {
            if (!isThere() || call.completed) {
                return false;
            }
            id = call.id;
            return call.giveUp(new RPCXException(code, why, call.executed(), cause));
        }

        @Override
        void left() {}

        @Override
        void lost() {}
    }
}
