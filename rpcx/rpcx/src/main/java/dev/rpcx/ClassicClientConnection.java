package dev.rpcx;

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
 * A client's connection on the classic wire, as in the paper: a random long for each call, and a map from it to the call's future. A future
 * ends in every case: with its reply, at its deadline, or with the connection.
 */
final class ClassicClientConnection extends ClassicConnection {
    /** Builds the request of a call, once its id is known. */
    interface Request {
        ByteBuf of(long id);
    }

    /** Below the five minutes after which our own server ends a connection that nobody uses, with its standard settings. */
    private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(4);

    /** A reply that is larger than we take is passed over up to this size; one that says more ends the connection. */
    private static final int MAX_PASSED_BYTES = 1 << 30;

    private static final int MAX_CALLS = Wire.MAX_SLOTS;

    /** A reply that is no larger is not charged while it arrives: a client has few connections. */
    private static final int UNCHARGED_BYTES = 4 * 1024;

    private final String peer;
    private final Platform platform;
    private final Map<Long, Call> underWay = new ConcurrentHashMap<>();

    /** Charged for requests that have not left, those of calls that are over among them. */
    private final Account account;

    /** The charge is for the reply that is arriving, where it is not small. Event loop only. */
    private final Charge arriving;

    private long arrivingBytes;

    private volatile @Nullable RPCXException end;

    /** Of calls whose requests have left whole. Event loop only. */
    private RPCXException.Executed executedAtEnd = RPCXException.Executed.MAYBE;

    /**
     * The server has said that it takes no more calls here, or that of one of them, which reads the same: those under
     * way are waited for.
     */
    private volatile boolean isLeft;

    ClassicClientConnection(Channel channel, Account account, Platform platform, String peer, long keepAliveNanos) {
        super(channel, true, account, Wire.MAX_MESSAGE_BYTES, MAX_PASSED_BYTES, keepAliveNanos, IDLE_NANOS);
        this.account = account;
        this.platform = platform;
        this.peer = peer;
        this.arriving = account.charge(Resource.REPLY_BYTES);
        account.watch(underWay::size);
    }

    boolean isUsable() {
        return end == null && !isLeft && channel.isOpen();
    }

    /** From any thread. */
    boolean isOver() {
        return end != null || !channel.isOpen();
    }

    int callsUnderWay() {
        return underWay.size();
    }

    // ---- a caller's thread

    /** From any thread. The future ends with the bytes of the result, or an {@link RPCXException}; cancelling it forgets the call. */
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
        if (underWay.size() >= MAX_CALLS) {
            reply.completeExceptionally(crowded("calls under way"));
            return;
        }
        long id = register(call);
        reply.whenComplete((result, thrown) -> underWay.remove(id, call));
        ByteBuf frame = request.of(id);
        int bytes = frame.readableBytes();
        if (bytes - ClassicFrames.LENGTH_BYTES > Wire.MAX_MESSAGE_BYTES) {
            reply.completeExceptionally(OwnEnd.unfit(
                    RPCXException.Code.TOO_LARGE,
                    "a request of " + bytes + " bytes (expected: at most " + Wire.MAX_MESSAGE_BYTES + ")"));
            return;
        }
        long taken = queuedBytes(bytes);
        if (!account.take(Resource.REQUEST_BYTES, taken)) {
            reply.completeExceptionally(crowded("bytes of requests that the server has not taken"));
            return;
        }
        boolean isQueued = false;
        try {
            byte[] whole = new byte[bytes];
            frame.readBytes(whole);
            Future<?> timer =
                    loop().schedule(() -> expireBehindSockets(call, deadlineNanos, left), left, TimeUnit.NANOSECONDS);
            // which would keep the reply until then
            reply.whenComplete((result, thrown) -> timer.cancel(false));
            loop().execute(() -> writeUnlessOver(whole, call));
            isQueued = true;
        } finally {
            if (!isQueued) {
                // an Error too, as where there is no memory for the bytes
                account.give(Resource.REQUEST_BYTES, taken);
            }
        }
    }

    private long register(Call call) {
        long id;
        do {
            // 0 is the connection's own
            id = platform.random().nextLong();
        } while (id == 0 || underWay.putIfAbsent(id, call) != null);
        return id;
    }

    // ---- the event loop

    private void writeUnlessOver(byte[] frame, Call call) {
        if (call.reply.isDone()) {
            account.give(Resource.REQUEST_BYTES, queuedBytes(frame.length));
        } else if (end != null || !channel.isActive()) {
            account.give(Resource.REQUEST_BYTES, queuedBytes(frame.length));
            call.reply.completeExceptionally(unsent());
        } else {
            write(frame, call);
        }
    }

    /**
     * Its time is over. The reply may lie in the socket, where the event loop was held up: a timer that is due at once
     * is not run before the sockets are looked at.
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
                        ? OwnEnd.unheard(
                                peer + ": no reply in time, while the event loop was held up for "
                                        + TimeUnit.NANOSECONDS.toMillis(lateNanos) + " ms or more",
                                RPCXException.Executed.MAYBE)
                        : late(RPCXException.Executed.MAYBE));
    }

    private RPCXException late(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, peer + ": no reply in time", executed, null);
    }

    private RPCXException crowded(String of) {
        return OwnEnd.full(peer + ": too many " + of);
    }

    private RPCXException lost(RPCXException.Executed executed) {
        return OwnEnd.isNoRoom(end)
                ? OwnEnd.noRoom(whyLost(), executed)
                : new RPCXException(codeOfEnd(), whyLost(), executed, null);
    }

    /** For a call whose request has not left whole. */
    private RPCXException lostUnsent() {
        return OwnEnd.isNoRoom(end) ? lost(RPCXException.Executed.NOT_EXECUTED) : unsent();
    }

    /** For a call of which no byte has left. */
    private RPCXException unsent() {
        return OwnEnd.left(codeOfEnd(), whyLost());
    }

    private RPCXException.Code codeOfEnd() {
        RPCXException why = end;
        return why == null ? RPCXException.Code.UNAVAILABLE : why.code();
    }

    private String whyLost() {
        RPCXException why = end;
        return peer + ": the connection ended" + (why == null ? "" : ": " + why.getMessage());
    }

    /** The same end, which is no fault of the server's where this side had no memory for what it sent. */
    private RPCXException orNoRoom(RPCXException why) {
        String wanted = memoryWanted();
        return wanted == null ? why : OwnEnd.noRoom(wanted, why.executed());
    }

    @Override
    boolean isBusy() {
        return !underWay.isEmpty();
    }

    @Override
    void onLook(long nowNanos) {
        closeIfLeft();
    }

    private void closeIfLeft() {
        if (isLeft && underWay.isEmpty()) {
            channel.close();
        }
    }

    @Override
    public boolean hold(long bytes) {
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
    public void passes() {
        arrived();
    }

    @Override
    public void passed(byte[] begin, int bytes, int length) {
        ByteBuf first = Unpooled.wrappedBuffer(begin, 0, bytes);
        Long id = ClassicWire.id(first);
        Call waiting = id == null ? null : underWay.get(id);
        if (waiting != null) {
            RPCXException.Executed executed = ClassicWire.isResult(first, length)
                    ? RPCXException.Executed.EXECUTED
                    : RPCXException.Executed.MAYBE;
            waiting.reply.completeExceptionally(
                    length <= Wire.MAX_MESSAGE_BYTES
                            ? OwnEnd.noRoom(
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
        // whose it is has it from here on
        arrived();
        ClassicWire.Reply reply = ClassicWire.readReply(Unpooled.wrappedBuffer(frame, 0, bytes));
        RPCXException error = reply.error();
        if (reply.id() == 0) {
            if (error != null) {
                fail(error);
            }
            return;
        }
        // none: its call is over, and the reply is late
        Call waiting = underWay.get(reply.id());
        if (waiting == null) {
            return;
        }
        if (error == null) {
            waiting.reply.complete(reply.result());
        } else {
            // before the caller hears of it: its next call goes elsewhere. A server that has taken this connection a
            // moment ago does not stop, and means this call alone
            isLeft |= error.code() == RPCXException.Code.UNAVAILABLE
                    && error.executed() == RPCXException.Executed.NOT_EXECUTED
                    && upNanos() >= ClientAddress.KEPT_NANOS;
            waiting.reply.completeExceptionally(error);
        }
        closeIfLeft();
    }

    /** Whatever the server has answered has been read: what it says of the calls that are left is true of each. */
    @Override
    void onEnd(RPCXException why) {
        end = orNoRoom(why);
        executedAtEnd = why.executed();
        endAll();
    }

    @Override
    void onOver() {
        arrived();
        if (end == null) {
            end = orNoRoom(brokenOff(RPCXException.Code.UNAVAILABLE, "closed"));
        }
        endAll();
    }

    /**
     * Behind the close of the socket: what waits to leave would go on leaving for some seconds over TLS, while its
     * calls are told that they are not executed.
     */
    private void endAll() {
        SocketQueue.closeNow(channel);
        if (underWay.isEmpty()) {
            return;
        }
        // once for all of them
        RPCXException lost = lost(executedAtEnd);
        RPCXException unsent = lostUnsent();
        for (Call waiting : new ArrayList<>(underWay.values())) {
            waiting.reply.completeExceptionally(waiting.hasLeft ? lost : unsent);
        }
    }

    /** Its reply ends with the bytes of the result. Gives back what the request is charged, as its bytes leave. */
    private final class Call implements Leaving {
        final CallFuture<byte[]> reply = new CallFuture<>();

        /** The whole request has left, so that the server may execute it. Event loop only. */
        private boolean hasLeft;

        @Override
        public void left(long bytes) {
            account.give(Resource.REQUEST_BYTES, bytes);
        }

        @Override
        public void leftWhole() {
            hasLeft = true;
        }
    }
}
