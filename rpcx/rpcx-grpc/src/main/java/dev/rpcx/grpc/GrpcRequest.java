package dev.rpcx.grpc;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.jspecify.annotations.Nullable;

/**
 * What the client sends for one call: the messages that arrive in the DATA frames of an HTTP/2 stream become a REQUEST
 * with its parts, or the items of a stream and their end. A piece of a message is handed on as soon as it has arrived,
 * so that the server's limits on size, memory and time hold for it. Event loop only.
 *
 * <p>A method without a stream of items takes exactly one message. Its last frame is handed on only when the client has
 * ended its side, since a second message is a fault, after which the handler must not start.
 */
final class GrpcRequest {
    private final GrpcCall call;
    private final GrpcConnection connection;
    private final boolean takesItems;
    private final boolean isGzip;
    private final int head;

    /** What stands in front of the message in the REQUEST frame; null when the frame has been handed on. */
    private @Nullable ByteBuf prelude;

    /** The bytes so far of the prefix of the next message, and their number. */
    private long prefix;

    private int prefixBytes;

    private boolean isInMessage;

    /** Number of bytes of the present message that have not arrived. */
    private int remaining;

    /** Number of bytes that have come out of the present compressed message. */
    private int inflatedBytes;

    /** Reads the present message if it is compressed; null if it is not. */
    private @Nullable GzipReader gzip;

    /** Whether the first frame of the present item has been handed on. */
    private boolean isItemBegun;

    /** Whether there has been a message. */
    private boolean hasMessage;

    /** Number of items that the server wants. */
    private long credit;

    /** What has arrived and waits for credit; null if nothing waits. */
    private @Nullable ByteBuf held;

    /** Number of bytes that the connection is charged for {@link #held}. */
    private int heldBytes;

    /** Whether the translator is going to call {@link #resume}. */
    private boolean isResumeQueued;

    /** Whether the client has ended its side. */
    private boolean isEnded;

    /** Whether nothing more is handed on, because all has been, or because the call is over. */
    private boolean isClosed;

    GrpcRequest(
            GrpcCall call, GrpcConnection connection, boolean takesItems, boolean isGzip, int head, ByteBuf prelude) {
        this.call = call;
        this.connection = connection;
        this.takesItems = takesItems;
        this.isGzip = isGzip;
        this.head = head;
        this.prelude = prelude;
    }

    /** Returns the number of bytes of the REQUEST frame that stand in front of the message; 0 if it is handed on. */
    int preludeBytes() {
        ByteBuf before = prelude;
        return before == null ? 0 : before.readableBytes();
    }

    /**
     * Begins the call at the server even if no message has come. A method that takes items has no other message, so its
     * REQUEST is complete. For any other method, the server counts the time from now on.
     */
    void beginWithoutMessage() {
        if (prelude != null && !isClosed) {
            sendFrame(Unpooled.EMPTY_BUFFER, !takesItems);
        }
    }

    /**
     * Takes what has arrived.
     *
     * @param isLast whether the client has ended its side with this
     * @return number of bytes that wait for credit, and that the client's window is to be kept smaller by
     */
    int onData(ByteBuf data, boolean isLast) {
        isEnded |= isLast;
        if (held == null) {
            read(data);
        }
        int waiting = isClosed ? 0 : data.readableBytes();
        if (waiting > 0 && !hold(data)) {
            return 0;
        }
        endIfRead();
        return waiting;
    }

    private boolean hold(ByteBuf data) {
        if (!connection.hold(data.readableBytes())) {
            fail(RPCXException.Code.OVERLOADED, "too many bytes of items wait on this connection or server");
            return false;
        }
        ByteBuf kept = held;
        if (kept == null) {
            kept = held = connection.allocator().buffer(data.readableBytes());
        }
        heldBytes += data.readableBytes();
        kept.writeBytes(data);
        return true;
    }

    void onCredit(long items) {
        credit = Math.min(Long.MAX_VALUE - items, credit) + items;
        if (held != null && !isResumeQueued) {
            isResumeQueued = true;
            // The server's connection may be at work, so what waits is handed on in a task of its own.
            connection.resumeLater(this);
        }
    }

    /** Hands on what has waited for credit, as far as there is credit now. */
    void resume() {
        isResumeQueued = false;
        ByteBuf waiting = held;
        if (waiting == null || isClosed) {
            return;
        }
        int before = waiting.readableBytes();
        read(waiting);
        if (held != waiting) {
            // The call has ended, which has dropped what waited.
            return;
        }
        int taken = before - waiting.readableBytes();
        heldBytes -= taken;
        connection.unhold(taken);
        connection.consumed(call, taken);
        if (waiting.isReadable()) {
            waiting.discardSomeReadBytes();
        } else {
            held = null;
            waiting.release();
            endIfRead();
        }
    }

    private void read(ByteBuf in) {
        try {
            boolean goesOn = true;
            while (goesOn && in.isReadable() && !isClosed) {
                if (isInMessage) {
                    readMessage(in);
                } else {
                    goesOn = readPrefix(in);
                }
            }
        } catch (WireFault fault) {
            fail(RPCXException.Code.PROTOCOL, String.valueOf(fault.getMessage()));
        }
    }

    /**
     * Reads one byte of a prefix.
     *
     * @return false if the next message has to wait for credit; nothing has been read then
     */
    private boolean readPrefix(ByteBuf in) {
        if (takesItems && credit == 0) {
            return false;
        }
        prefix = prefix << Byte.SIZE | in.readUnsignedByte();
        prefixBytes++;
        if (prefixBytes == GrpcCall.PREFIX_BYTES) {
            long length = prefix & 0xFFFF_FFFFL;
            int flag = (int) (prefix >>> Integer.SIZE);
            prefix = 0;
            prefixBytes = 0;
            beginMessage(flag, length, in);
        }
        return true;
    }

    private void beginMessage(int flag, long length, ByteBuf in) {
        if (hasMessage && !takesItems) {
            throw new WireFault("a second message (expected: one, and then the end of the client's side)");
        }
        if (flag > 1 || flag == 1 && !isGzip) {
            throw new WireFault("a message with flag " + flag + " (expected: 0, or 1 with grpc-encoding: gzip)");
        }
        if (length > connection.maxMessageBytes()) {
            failLarge();
            return;
        }
        hasMessage = true;
        isInMessage = true;
        isItemBegun = false;
        inflatedBytes = 0;
        remaining = (int) length;
        if (takesItems) {
            credit--;
        }
        if (flag == 1 && length > 0) {
            if (!connection.hold(GzipReader.MEMORY_BYTES)) {
                fail(RPCXException.Code.OVERLOADED, "too many compressed messages on this connection or server");
                return;
            }
            gzip = new GzipReader();
        }
        if (remaining == 0) {
            send(Unpooled.EMPTY_BUFFER, isLast(in));
            isInMessage = false;
        }
    }

    private void readMessage(ByteBuf in) {
        ByteBuf part = in.readSlice(Math.min(in.readableBytes(), remaining));
        remaining -= part.readableBytes();
        GzipReader reader = gzip;
        if (reader == null) {
            send(part, remaining == 0 && isLast(in));
        } else {
            reader.read(part, this::inflated);
            if (remaining == 0 && !isClosed) {
                if (!reader.isWhole()) {
                    throw new WireFault("a message in gzip is cut off");
                }
                closeGzip();
                if (isLast(in)) {
                    send(Unpooled.EMPTY_BUFFER, true);
                }
            }
        }
        isInMessage = remaining > 0;
    }

    /** Returns whether the present message, which has been read, needs no further frame: see the class. */
    private boolean isLast(ByteBuf in) {
        return takesItems || isEnded && !in.isReadable();
    }

    private boolean inflated(ByteBuf piece) {
        inflatedBytes += piece.readableBytes();
        if (inflatedBytes > connection.maxMessageBytes()) {
            failLarge();
        } else {
            send(piece, false);
        }
        return !isClosed;
    }

    private void send(ByteBuf part, boolean isLast) {
        do {
            int room = Wire.MAX_PAYLOAD_BYTES - preludeBytes();
            ByteBuf piece = part.readSlice(Math.min(part.readableBytes(), room));
            sendFrame(piece, part.isReadable() || !isLast);
        } while (part.isReadable() && !isClosed);
    }

    /** Hands on a frame. If it is the last one of a request without items, the request is closed. */
    private void sendFrame(ByteBuf piece, boolean more) {
        int flag = more ? Wire.MORE : 0;
        ByteBuf before = prelude;
        isClosed |= !more && !takesItems;
        if (before != null) {
            prelude = null;
            connection.toServer().frame(head | flag, call.id(), before, piece);
            call.onRequestSent();
        } else {
            int type = takesItems && !isItemBegun ? Wire.ITEM : Wire.PART;
            isItemBegun = true;
            connection.toServer().frame(type | flag, call.id(), piece);
        }
    }

    /** Hands on that the client has ended its side, when all that came before has been read. */
    private void endIfRead() {
        if (!isEnded || isClosed || held != null) {
            return;
        }
        if (isInMessage || prefixBytes > 0) {
            fail(RPCXException.Code.PROTOCOL, "the client has ended its side within a message");
        } else if (takesItems) {
            isClosed = true;
            connection.toServer().empty(Wire.END, call.id());
        } else if (!hasMessage) {
            fail(RPCXException.Code.PROTOCOL, "no message (expected: one)");
        } else {
            sendFrame(Unpooled.EMPTY_BUFFER, false);
        }
    }

    private void failLarge() {
        fail(RPCXException.Code.TOO_LARGE, "a message of more than " + connection.maxMessageBytes() + " bytes");
    }

    /** Ends the call. A handler has been started at most if the method takes items. */
    private void fail(RPCXException.Code code, String text) {
        RPCXException.Executed executed =
                takesItems ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED;
        call.fail(new RPCXException(code, text, executed, null));
    }

    /** Hands on nothing more, and drops what waits. */
    void close() {
        isClosed = true;
        prelude = null;
        ByteBuf waiting = held;
        if (waiting != null) {
            held = null;
            connection.unhold(heldBytes);
            heldBytes = 0;
            waiting.release();
        }
        closeGzip();
    }

    private void closeGzip() {
        GzipReader reader = gzip;
        if (reader != null) {
            gzip = null;
            reader.close();
            connection.unhold(GzipReader.MEMORY_BYTES);
        }
    }
}
