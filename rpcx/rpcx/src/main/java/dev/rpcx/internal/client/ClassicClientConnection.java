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
import dev.rpcx.internal.wire.ConnectionErrors;
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
 * A client's connection on the classic wire, which {@link ClassicWire} describes. Each call gets a random number of 64
 * bits as its id, and the server's reply has the same id. The future of a call always completes: with the reply, at the
 * deadline, or when the connection ends.
 */
public final class ClassicClientConnection extends ClassicConnection {
    /** Encodes the request of a call, as soon as the call has an id. */
    interface Request {
        ByteBuf of(long id);
    }

    /**
     * Time in nanoseconds after which an unused connection is closed. A server of this library waits five minutes by
     * default, so the client is the first to close the connection.
     */
    private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(4);

    /**
     * Maximum length in bytes of a reply that is skipped because it is too large. A longer reply ends the connection.
     */
    private static final int MAX_SKIPPED_BYTES = 1 << 30;

    private static final int MAX_CALLS = Wire.MAX_SLOTS;

    /**
     * Maximum memory in bytes that an arriving reply takes without a charge. A client has few connections, so only few
     * replies arrive at the same time.
     */
    private static final int MAX_UNCHARGED_BYTES = 4 * 1024;

    private final String peer;
    private final Platform platform;

    /**
     * The calls in flight, by their ids. The thread that sends a call counts the calls in this map, and adds the new
     * call. The event loop looks calls up. The thread that ends a call removes the call.
     */
    private final Map<Long, Call> inFlight = new ConcurrentHashMap<>();

    /**
     * Account that is charged for requests until they have been sent or dropped. This includes requests whose calls
     * have ended.
     */
    private final Account account;

    /**
     * Charge for the memory of the arriving reply, if the reply takes more than {@code MAX_UNCHARGED_BYTES} bytes. Only
     * the event loop uses this field.
     */
    private final Charge arriving;

    private long arrivingBytes;

    /**
     * Why the connection has ended; null before. The event loop stores the reason before it ends the calls, and any
     * thread reads it. Another thread can still add a call after the event loop has ended the calls. In this case, the
     * task that was to send the added call finds the reason and ends the call. The task runs on the event loop.
     */
    private volatile @Nullable RPCXException endReason;

    /**
     * What the errors of calls say about execution when the connection ends. It applies only to calls whose requests
     * have been completely sent. Only the event loop uses this field.
     */
    private RPCXException.Executed executedAtEnd = RPCXException.Executed.MAYBE;

    /**
     * Whether the server has refused a call on this connection with {@code UNAVAILABLE}, at least
     * {@link ClientAddress#KEPT_NANOS} after the connection was established. Such a refusal can mean that the server is
     * stopping, or it can concern only that call. New calls use another connection, unless too many replaced
     * connections are still open. Calls in flight still wait for their replies. Set by the event loop, and read by any
     * thread.
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

    /** Returns true if the connection has ended. This method is thread-safe. */
    boolean isOver() {
        return endReason != null || !channel.isOpen();
    }

    int callsInFlight() {
        return inFlight.size();
    }

    // ---- a caller's thread

    /**
     * Sends the request of a call, and returns a future with the bytes of the result. The future fails with an
     * {@link RPCXException}, or with whatever was thrown before the request was queued. If the caller cancels the
     * future, the connection forgets the call. This method is thread-safe.
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
            reply.completeExceptionally(ClientCallErrors.noReply(peer, RPCXException.Executed.NOT_EXECUTED));
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
            reply.completeExceptionally(ClientCallErrors.largeRequest(bytes, Wire.MAX_MESSAGE_BYTES));
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
            // a reply with id 0 is about the connection itself, so no call gets this id
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
     * Ends a call whose deadline has passed, unless the reply is already in the socket. For this, the method sets a
     * timer with a delay of 0, which ends the call. The event loop reads its sockets before it runs such a timer.
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
                        ? ClientCallErrors.noReplyWhileHeldUp(peer, lateNanos, RPCXException.Executed.MAYBE)
                        : ClientCallErrors.noReply(peer, RPCXException.Executed.MAYBE));
    }

    private RPCXException crowded(String of) {
        return LocalFailure.full(peer + ": too many " + of);
    }

    private RPCXException lost(RPCXException.Executed executed) {
        return LocalFailure.isNoRoom(endReason)
                ? LocalFailure.noRoom(whyLost(), executed)
                : ClientCallErrors.connectionLost(codeOfEnd(), whyLost(), executed);
    }

    /** Returns the error for a call whose request was not completely sent when the connection ended. */
    private RPCXException lostUnsent() {
        return LocalFailure.isNoRoom(endReason) ? lost(RPCXException.Executed.NOT_EXECUTED) : unsent();
    }

    /**
     * Returns the error for a call that the server cannot have executed, since the request of the call was not
     * completely sent.
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

    /**
     * Returns {@code why}, the reason for the end of the connection. But if this side had no memory for what the server
     * sent, returns an error that names the lack of memory.
     */
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
        if (arrivingBytes + bytes > MAX_UNCHARGED_BYTES && !arriving.set(arrivingBytes + bytes)) {
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
                            : ClientCallErrors.largeReply(peer, length, Wire.MAX_MESSAGE_BYTES, executed));
        }
    }

    @Override
    public void frame(byte[] frame, int bytes) {
        // the reply belongs to its call now, and is no longer charged
        arrived();
        ClassicWire.Reply reply = ClassicWire.readReply(Unpooled.wrappedBuffer(frame, 0, bytes));
        RPCXException error = reply.error();
        if (reply.id() == 0) {
            if (error != null) {
                fail(error);
            }
            return;
        }
        // If a call ends before its reply arrives, there is no call with this id.
        Call waiting = inFlight.get(reply.id());
        if (waiting == null) {
            return;
        }
        if (error == null) {
            waiting.reply.complete(reply.result());
        } else {
            // This field is set before the caller gets the error, so that the caller's next call uses another
            // connection. If the connection is younger than KEPT_NANOS, the server accepted it only just now, and is
            // probably not stopping. The refusal is then taken to concern only this call.
            isDraining |= error.code() == RPCXException.Code.UNAVAILABLE
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED
                    && upNanos() >= ClientAddress.KEPT_NANOS;
            waiting.reply.completeExceptionally(error);
        }
        closeIfDrained();
    }

    /**
     * Ends all calls in flight, because the connection ends. The error of a call says whether the call was executed. If
     * the request was not completely sent, the error says {@code NOT_EXECUTED}. If the request was completely sent, the
     * error says the same as {@code why}. What {@code why} says is true, for one of two reasons:
     *
     * <ul>
     *   <li>If the server has sent {@code why}, then {@code why} applies to the calls that the server has not answered.
     *       All calls in flight are such calls, since this client has read all earlier replies.
     *   <li>If this client has made {@code why}, then {@code why} says {@code MAYBE} whenever a call is in flight.
     * </ul>
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
            endReason = orNoRoom(ConnectionErrors.brokenOff(RPCXException.Code.UNAVAILABLE, "closed"));
        }
        endAll();
    }

    /**
     * Closes the socket immediately, and afterwards ends all calls. With an ordinary close, a TLS connection would
     * still send waiting requests for some seconds. But the calls of these requests end with errors that say
     * NOT_EXECUTED.
     */
    private void endAll() {
        SocketQueue.closeNow(channel);
        if (inFlight.isEmpty()) {
            return;
        }
        // Each of the two errors is created once, and is shared by all calls that end with it.
        RPCXException lost = lost(executedAtEnd);
        RPCXException unsent = lostUnsent();
        for (Call waiting : new ArrayList<>(inFlight.values())) {
            waiting.reply.completeExceptionally(waiting.isSent ? lost : unsent);
        }
    }

    /**
     * A call on this connection. The future {@code reply} completes with the bytes of the result. The connection's
     * account is charged for the request. {@link #onReleased} reduces this charge when bytes of the request have been
     * sent, or will never be sent.
     */
    private final class Call implements WriteListener {
        final CallFuture<byte[]> reply = new CallFuture<>();

        /**
         * Whether the request has been completely sent. If not, the server cannot execute the call. Only the event loop
         * uses this field.
         */
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
