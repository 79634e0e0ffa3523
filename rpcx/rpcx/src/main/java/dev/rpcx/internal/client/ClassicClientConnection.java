package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicConnection;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection on the classic wire: see {@link ClassicWire}. Each call has a random long as its id, and its
 * reply is found by that id. The future of a call always completes: with the reply, at the deadline, or when the
 * connection ends.
 */
public final class ClassicClientConnection extends ClassicConnection {
    /** Builds the request of a call when the id of the call is known. */
    interface Request {
        ByteBuf of(long id);
    }

    /**
     * Time after which an unused connection is closed. It is shorter than the five minutes after which a server of this
     * library closes an unused connection by default.
     */
    private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(4);

    /** A reply that is too large is skipped if its length is at most this. A longer reply ends the connection. */
    private static final int MAX_SKIPPED_BYTES = 1 << 30;

    private static final int MAX_CALLS = Wire.MAX_SLOTS;

    /**
     * Maximum size of a reply that is not charged while it arrives. Few such replies arrive at the same time, since a
     * client has few connections.
     */
    private static final int UNCHARGED_BYTES = 4 * 1024;

    private final String peer;
    private final Platform platform;
    private final Map<Long, Call> inFlight = new ConcurrentHashMap<>();

    /** Account that is charged for requests that have not been sent, including those of calls that have ended. */
    private final Account account;

    /** Charge for the reply that is arriving, if the reply is larger than {@code UNCHARGED_BYTES}. Event loop only. */
    private final Charge arriving;

    private long arrivingBytes;

    private volatile @Nullable RPCXException endReason;

    /**
     * What the errors of calls say about execution when the connection ends, if their requests were completely sent.
     * Event loop only.
     */
    private RPCXException.Executed executedAtEnd = RPCXException.Executed.MAYBE;

    /**
     * Whether the server has said that it takes no more calls on this connection, or has refused a single call: the two
     * look the same. New calls then use another connection, unless too many connections have been replaced already.
     * Calls in flight still wait for their replies.
     */
    private volatile boolean isDraining;

    public ClassicClientConnection(
            Channel channel, Account account, Platform platform, String peer, long keepAliveNanos) {
        super(channel, true, account, Wire.MAX_MESSAGE_BYTES, MAX_SKIPPED_BYTES, keepAliveNanos, IDLE_NANOS);
        this.account = account;
        this.platform = platform;
        this.peer = peer;
        this.arriving = account.charge(Resource.REPLY_BYTES);
        account.setCallCounter(inFlight::size);
    }

    boolean isUsable() {
        return endReason == null && !isDraining && channel.isOpen();
    }

    /** Whether the connection has ended. Thread-safe: any thread may call this. */
    boolean isOver() {
        return endReason != null || !channel.isOpen();
    }

    int callsInFlight() {
        return inFlight.size();
    }

    // ---- a caller's thread

    /**
     * Sends the request of a call. Thread-safe: any thread may call this. The returned future completes with the bytes
     * of the result, or fails with an {@link RPCXException} or with whatever was thrown before the request was queued.
     * If the caller cancels the future, the connection forgets the call.
     */
    CallFuture<byte[]> send(Request request, long deadlineNanos) {
        Call call = new Call();
        CallFuture<byte[]> reply = call.reply;
        try {
            send(request, deadlineNanos, call);
        } catch (RejectedExecutionException e) {
            reply.completeExceptionally(unsent());
        } catch (Throwable t) {
            reply.completeExceptionally(t);
        }
        return reply;
    }

    private void send(Request request, long deadlineNanos, Call call) {
        CallFuture<byte[]> reply = call.reply;
        long left = deadlineNanos - nanoTime();
        if (left <= 0) {
            reply.completeExceptionally(late(RPCXException.Executed.NOT_EXECUTED));
            return;
        }
        if (inFlight.size() >= MAX_CALLS) {
            reply.completeExceptionally(crowded("calls in flight"));
            return;
        }
        long id = register(call);
        reply.whenComplete((result, thrown) -> inFlight.remove(id, call));
        ByteBuf frame = request.of(id);
        int bytes = frame.readableBytes();
        if (bytes - ClassicFrames.LENGTH_BYTES > Wire.MAX_MESSAGE_BYTES) {
            reply.completeExceptionally(LocalFailure.unfit(
                    RPCXException.Code.TOO_LARGE,
                    "a request of " + bytes + " bytes (expected: at most " + Wire.MAX_MESSAGE_BYTES + ")"));
            return;
        }
        long taken = queuedBytes(bytes);
        if (!account.tryCharge(Resource.REQUEST_BYTES, taken)) {
            reply.completeExceptionally(crowded("bytes of requests that the server has not taken"));
            return;
        }
        boolean isQueued = false;
        try {
            byte[] whole = new byte[bytes];
            frame.readBytes(whole);
            Future<?> timer =
                    loop().schedule(() -> expireBehindSockets(call, deadlineNanos, left), left, TimeUnit.NANOSECONDS);
            // The end of the call cancels the timer. Otherwise the timer would keep the reply in memory until the
            // deadline.
            reply.whenComplete((result, thrown) -> timer.cancel(false));
            loop().execute(() -> writeUnlessOver(whole, call));
            isQueued = true;
        } finally {
            if (!isQueued) {
                // This also runs after an Error, for example if there is no memory for the bytes of the request.
                account.release(Resource.REQUEST_BYTES, taken);
            }
        }
    }

    private long register(Call call) {
        long id;
        do {
            // id 0 stands for the connection itself
            id = platform.random().nextLong();
        } while (id == 0 || inFlight.putIfAbsent(id, call) != null);
        return id;
    }

    // ---- the event loop

    private void writeUnlessOver(byte[] frame, Call call) {
        if (call.reply.isDone()) {
            account.release(Resource.REQUEST_BYTES, queuedBytes(frame.length));
        } else if (endReason != null || !channel.isActive()) {
            account.release(Resource.REQUEST_BYTES, queuedBytes(frame.length));
            call.reply.completeExceptionally(unsent());
        } else {
            write(frame, call);
        }
    }

    /**
     * Ends a call whose time is over, unless its reply is in the socket already. The event loop reads its sockets
     * before it runs a timer without delay, so such a timer ends the call.
     */
    private void expireBehindSockets(Call call, long deadlineNanos, long givenNanos) {
        try {
            loop().schedule(() -> expire(call, deadlineNanos, givenNanos), 0, TimeUnit.NANOSECONDS);
        } catch (Throwable t) {
            expire(call, deadlineNanos, givenNanos);
            throw t;
        }
    }

    private void expire(Call call, long deadlineNanos, long givenNanos) {
        long lateNanos = nanoTime() - deadlineNanos;
        call.reply.completeExceptionally(
                ClientConnection.isHeldUp(lateNanos, givenNanos)
                        ? LocalFailure.unheard(
                                peer + ": no reply in time, while the event loop was held up for "
                                        + TimeUnit.NANOSECONDS.toMillis(lateNanos) + " ms or more",
                                RPCXException.Executed.MAYBE)
                        : late(RPCXException.Executed.MAYBE));
    }

    private RPCXException late(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, peer + ": no reply in time", executed, null);
    }

    private RPCXException crowded(String of) {
        return LocalFailure.full(peer + ": too many " + of);
    }

    private RPCXException lost(RPCXException.Executed executed) {
        return LocalFailure.isNoRoom(endReason)
                ? LocalFailure.noRoom(whyLost(), executed)
                : new RPCXException(codeOfEnd(), whyLost(), executed, null);
    }

    /** Returns the error for a call whose request was not completely sent when the connection ended. */
    private RPCXException lostUnsent() {
        return LocalFailure.isNoRoom(endReason) ? lost(RPCXException.Executed.NOT_EXECUTED) : unsent();
    }

    /**
     * Returns the error for a call that the server cannot have executed, since its request was not sent, or not
     * completely.
     */
    private RPCXException unsent() {
        return LocalFailure.notSent(codeOfEnd(), whyLost());
    }

    private RPCXException.Code codeOfEnd() {
        RPCXException why = endReason;
        return why == null ? RPCXException.Code.UNAVAILABLE : why.code();
    }

    private String whyLost() {
        RPCXException why = endReason;
        return peer + ": the connection ended" + (why == null ? "" : ": " + why.getMessage());
    }

    /** Returns {@code why}. But if this side had no memory for what the server sent, returns an error that says so. */
    private RPCXException orNoRoom(RPCXException why) {
        String wanted = memoryWanted();
        return wanted == null ? why : LocalFailure.noRoom(wanted, why.executed());
    }

    @Override
    public boolean isBusy() {
        return !inFlight.isEmpty();
    }

    @Override
    public void onCheck(long nowNanos) {
        closeIfDrained();
    }

    private void closeIfDrained() {
        if (isDraining && inFlight.isEmpty()) {
            channel.close();
        }
    }

    @Override
    public boolean reserve(long bytes) {
        if (arrivingBytes + bytes > UNCHARGED_BYTES && !arriving.set(arrivingBytes + bytes)) {
            return false;
        }
        arrivingBytes += bytes;
        return true;
    }

    private void arrived() {
        arriving.release();
        arrivingBytes = 0;
    }

    @Override
    public void onSkip() {
        arrived();
    }

    @Override
    public void onSkipped(byte[] begin, int bytes, int length) {
        ByteBuf first = Unpooled.wrappedBuffer(begin, 0, bytes);
        Long id = ClassicWire.id(first);
        Call waiting = id == null ? null : inFlight.get(id);
        if (waiting != null) {
            RPCXException.Executed executed = ClassicWire.isResult(first, length)
                    ? RPCXException.Executed.EXECUTED
                    : RPCXException.Executed.MAYBE;
            waiting.reply.completeExceptionally(
                    length <= Wire.MAX_MESSAGE_BYTES
                            ? LocalFailure.noRoom(
                                    "too many bytes of replies on their way to this client"
                                            + " (expected: fewer calls with large results at once)",
                                    executed)
                            : new RPCXException(
                                    RPCXException.Code.TOO_LARGE,
                                    peer + ": a reply of " + length + " bytes (expected: at most "
                                            + Wire.MAX_MESSAGE_BYTES + ")",
                                    executed,
                                    null));
        }
    }

    @Override
    public void frame(byte[] frame, int bytes) {
        // from here on the reply belongs to its call, and is not charged
        arrived();
        ClassicWire.Reply reply = ClassicWire.readReply(Unpooled.wrappedBuffer(frame, 0, bytes));
        RPCXException error = reply.error();
        if (reply.id() == 0) {
            if (error != null) {
                fail(error);
            }
            return;
        }
        // There is no call with this id if the call has ended and its reply is late.
        Call waiting = inFlight.get(reply.id());
        if (waiting == null) {
            return;
        }
        if (error == null) {
            waiting.reply.complete(reply.result());
        } else {
            // Set before the caller gets the error, so that the caller's next call uses another connection. A server
            // that has accepted this connection less than KEPT_NANOS ago is not stopping, so its refusal concerns only
            // this call.
            isDraining |= error.code() == RPCXException.Code.UNAVAILABLE
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED
                    && upNanos() >= ClientAddress.KEPT_NANOS;
            waiting.reply.completeExceptionally(error);
        }
        closeIfDrained();
    }

    /**
     * Ends all calls that are left. All answers of the server have been read, so none of these calls has an answer, and
     * what {@code why} says about execution is true of each of them.
     */
    @Override
    public void onEnd(RPCXException why) {
        endReason = orNoRoom(why);
        executedAtEnd = why.executed();
        endAll();
    }

    @Override
    public void onOver() {
        arrived();
        if (endReason == null) {
            endReason = orNoRoom(brokenOff(RPCXException.Code.UNAVAILABLE, "closed"));
        }
        endAll();
    }

    /**
     * Closes the socket, then ends all calls. The order matters: over TLS, waiting requests would otherwise still be
     * sent for some seconds, although the errors of their calls say that they are not executed.
     */
    private void endAll() {
        SocketQueue.closeNow(channel);
        if (inFlight.isEmpty()) {
            return;
        }
        // each error is created once, and all of these calls share it
        RPCXException lost = lost(executedAtEnd);
        RPCXException unsent = lostUnsent();
        for (Call waiting : new ArrayList<>(inFlight.values())) {
            waiting.reply.completeExceptionally(waiting.isSent ? lost : unsent);
        }
    }

    /**
     * A call on this connection. {@code reply} ends with the bytes of the result. The charge for the request is
     * released while its bytes are sent.
     */
    private final class Call implements WriteListener {
        final CallFuture<byte[]> reply = new CallFuture<>();

        /** Whether the request has been completely sent, so that the server may execute it. Event loop only. */
        private boolean isSent;

        @Override
        public void onReleased(long bytes) {
            account.release(Resource.REQUEST_BYTES, bytes);
        }

        @Override
        public void onFrameWritten() {
            isSent = true;
        }
    }
}
