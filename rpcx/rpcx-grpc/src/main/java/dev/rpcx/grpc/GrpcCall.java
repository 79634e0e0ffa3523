package dev.rpcx.grpc;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http2.Http2Stream;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One call: its HTTP/2 stream, and its id on the native wire. {@link GrpcRequest} turns what the client sends into
 * frames; this class turns the frames of the server into what the client gets. Event loop only.
 *
 * <p>A call ends twice. To the server it is over with its final frame. To the client it is over when the trailers have
 * been sent, or when the stream has been closed. Only then is everything released.
 */
final class GrpcCall {
    /** Bytes in front of each message: whether it is compressed, and its length. */
    static final int PREFIX_BYTES = 5;

    /**
     * Bytes of a stream of items that may wait for the client. The server gets credit for as many items as probably
     * fit, but at least for one. Source: {@code StreamSender.WINDOW_BYTES}.
     */
    private static final int WINDOW_BYTES = 64 * 1024;

    /** Number of bytes that count for each item beside its message. */
    private static final int ITEM_BYTES = 64;

    /** Messages of fewer bytes are sent as they are, because gzip would hardly make them smaller. */
    private static final int MIN_GZIP_BYTES = 512;

    private final GrpcConnection connection;
    private final Http2Stream stream;
    private final int id;
    private final ServerMethod method;
    private final boolean answersInGzip;
    private final GrpcRequest request;

    // ---- what the server knows

    /** Whether the first frame of the call has been handed to the server. */
    private boolean isSent;

    private boolean isCancelled;

    /** Whether the server has sent the final frame, or never gets to know of the call. The id is free then. */
    private boolean isOverAtServer;

    // ---- the reply

    /** What has come of a message whose parts are not complete, behind room for its prefix; null if there is none. */
    private @Nullable ByteBuf message;

    /** Whether {@link #message} is the reply itself, and not an item. */
    private boolean isReply;

    private Metadata replyMetadata = Metadata.EMPTY;
    private boolean areHeadersSent;

    /** Whether the trailers have been handed to Netty. */
    private boolean isAnswered;

    private boolean isStreamClosed;

    /** Bytes of messages that have been handed to Netty and have not been written to the socket. */
    private long unsentBytes;

    /** Number of items that the server may still send by the credit that it has. */
    private long granted;

    /** Expected bytes of the next item. After a smaller one, it falls only to half. */
    private long itemBytes = WINDOW_BYTES;

    /**
     * Creates a call.
     *
     * @param isGzip whether the client's messages can be compressed
     * @param answersInGzip whether the messages of the reply are compressed, if they are not small
     * @param head type and flags of the REQUEST frame
     * @param prelude what stands in front of the request's message in that frame
     */
    GrpcCall(
            GrpcConnection connection,
            Http2Stream stream,
            int id,
            ServerMethod method,
            boolean isGzip,
            boolean answersInGzip,
            int head,
            ByteBuf prelude) {
        this.connection = connection;
        this.stream = stream;
        this.id = id;
        this.method = method;
        this.answersInGzip = answersInGzip;
        this.request = new GrpcRequest(this, connection, method.items() != null, isGzip, head, prelude);
    }

    int id() {
        return id;
    }

    Http2Stream stream() {
        return stream;
    }

    boolean answersInGzip() {
        return answersInGzip;
    }

    GrpcRequest request() {
        return request;
    }

    boolean isStreamClosed() {
        return isStreamClosed;
    }

    /** Returns whether the server has sent the final frame, or never gets to know of the call. */
    boolean isOverAtServer() {
        return isOverAtServer;
    }

    /** Called when the first frame of the call has been handed to the server. */
    void onRequestSent() {
        isSent = true;
        grant();
    }

    // ---- from the server

    /** Takes a frame of the native wire that has the id of this call. */
    void onFrame(int head, ByteBuf payload) {
        int type = head & Wire.TYPE_MASK;
        boolean more = (head & Wire.MORE) != 0;
        switch (type) {
            case Wire.CREDIT -> request.onCredit(Varint.read(payload));
            case Wire.ITEM -> {
                isReply = false;
                granted--;
                onPart(payload, more);
            }
            case Wire.REPLY -> {
                isReply = true;
                request.close();
                if ((head & Wire.METADATA) != 0) {
                    replyMetadata = MetadataFields.read(payload, Metadata.MAX_REPLY_BYTES);
                }
                onPart(payload, more);
            }
            case Wire.PART -> onPart(payload, more);
            case Wire.ERROR -> {
                overAtServer();
                answer(WireError.readToSendOn(payload));
            }
            default -> {
                // The server sends no other frame for a call.
            }
        }
    }

    private void onPart(ByteBuf payload, boolean more) {
        boolean isEnd = isReply && !more;
        if (isEnd) {
            overAtServer();
        }
        if (isAnswered || isStreamClosed) {
            return;
        }
        if (!isReply || !method.returnsStream()) {
            addPart(payload);
            if (!more) {
                sendMessage();
            }
        }
        if (isEnd) {
            request.close();
            isAnswered = true;
            beginReply();
            connection.sendTrailers(this, Trailers.ok(replyMetadata, connection.maxHeaderBytes()));
        }
    }

    private void addPart(ByteBuf payload) {
        ByteBuf whole = message;
        if (whole == null) {
            whole = message = connection.allocator().buffer(PREFIX_BYTES + payload.readableBytes());
            whole.writeZero(PREFIX_BYTES);
        }
        connection.putTogether(payload.readableBytes());
        whole.writeBytes(payload);
    }

    private void sendMessage() {
        ByteBuf whole = Objects.requireNonNull(message);
        message = null;
        int length = whole.readableBytes() - PREFIX_BYTES;
        connection.putTogether(-length);
        whole.setInt(1, length);
        boolean isCompressed = answersInGzip && length >= MIN_GZIP_BYTES;
        ByteBuf sent = isCompressed ? Gzip.compressed(whole, connection.allocator()) : whole;
        int bytes = sent.readableBytes();
        unsentBytes += bytes;
        itemBytes = Math.max(bytes + ITEM_BYTES, itemBytes / 2);
        beginReply();
        connection.sendData(this, sent);
        grant();
    }

    private void beginReply() {
        if (!areHeadersSent) {
            areHeadersSent = true;
            connection.sendHeaders(this);
        }
    }

    /** Called when a message has been written to the socket, or will never be. */
    void onWritten(int bytes) {
        unsentBytes -= bytes;
        grant();
    }

    /**
     * Gives the server credit for as many items as probably fit into the window, as long as at least half of the window
     * is free. Few frames of CREDIT are made: one when half of the credit is used up.
     */
    private void grant() {
        long room = WINDOW_BYTES - unsentBytes;
        if (!method.returnsStream() || !isSent || isCancelled || isOverAtServer || 2 * room < WINDOW_BYTES) {
            return;
        }
        long wanted = Math.max(1, room / itemBytes);
        if (2 * granted <= wanted) {
            long more = wanted - granted;
            granted = wanted;
            connection.toServer().credit(id, more);
        }
    }

    // ---- ends

    /**
     * Ends the call with an error that this side has found, before the server has ended it. Does nothing if the client
     * has its answer.
     */
    void fail(RPCXException error) {
        if (!isAnswered && !isStreamClosed) {
            answer(error);
            giveUp();
        }
    }

    private void answer(RPCXException error) {
        request.close();
        dropMessage();
        if (!isAnswered && !isStreamClosed) {
            isAnswered = true;
            connection.sendTrailers(this, connection.trailers(error, !areHeadersSent));
        }
    }

    /** Called when the HTTP/2 stream has been closed, by whichever side. */
    void onStreamClosed() {
        isStreamClosed = true;
        request.close();
        dropMessage();
        giveUp();
    }

    /** Tells the server that nobody waits for the call. If the server does not know of the call, the id is free. */
    private void giveUp() {
        if (isOverAtServer || isCancelled) {
            return;
        }
        if (isSent) {
            isCancelled = true;
            connection.toServer().empty(Wire.CANCEL, id);
        } else {
            overAtServer();
        }
    }

    private void overAtServer() {
        if (!isOverAtServer) {
            isOverAtServer = true;
            connection.overAtServer(this);
        }
    }

    private void dropMessage() {
        ByteBuf unsent = message;
        if (unsent != null) {
            message = null;
            connection.putTogether(PREFIX_BYTES - unsent.readableBytes());
            unsent.release();
        }
    }
}
