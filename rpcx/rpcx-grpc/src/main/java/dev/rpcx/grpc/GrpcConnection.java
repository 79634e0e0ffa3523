package dev.rpcx.grpc;

import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import dev.rpcx.internal.server.FloodGuard;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http2.AbstractHttp2ConnectionHandlerBuilder;
import io.netty.handler.codec.http2.DefaultHttp2Connection;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2LocalFlowController;
import io.netty.handler.codec.http2.DefaultHttp2RemoteFlowController;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2ConnectionAdapter;
import io.netty.handler.codec.http2.Http2ConnectionDecoder;
import io.netty.handler.codec.http2.Http2ConnectionEncoder;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.handler.codec.http2.UniformStreamByteDistributor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The translator of one connection of gRPC. It stands in the pipeline in front of a {@link ServerConnection}, which
 * serves the native wire. What the client sends by HTTP/2 becomes frames of the native wire, which this handler passes
 * on as if they had come from the socket. What the {@code ServerConnection} writes goes through {@link #write}, where
 * it becomes frames of HTTP/2. Event loop only.
 *
 * <p>The {@code ServerConnection} must not get bytes while it is at work. So frames are gathered in {@link ToServer},
 * and handed over at the end of a read, or in a task of their own if they do not come from a read.
 *
 * <p>The class is longer than 400 lines because it is the only one that knows both Netty's handler and the pipeline.
 */
final class GrpcConnection extends Http2ConnectionHandler {
    /** Bytes of one stream that a client may send before the server wants more of them. */
    private static final int STREAM_WINDOW_BYTES = 256 * 1024;

    /** Bytes of all streams that may be on their way from a client. Source: grpc-java, DEFAULT_FLOW_CONTROL_WINDOW. */
    private static final int CONNECTION_WINDOW_BYTES = 1024 * 1024;

    /** Largest size of a request's headers. Source: gRPC's default, and {@code Metadata.MAX_BYTES}. */
    private static final int MAX_HEADER_BYTES = 8 * 1024;

    /** Number of gathered bytes that are handed to the server before the end of the read. */
    private static final int MAX_GATHERED_BYTES = 64 * 1024;

    /** Memory of a stream whose call is over at the server, and which the client does not let end, in bytes. */
    private static final int STREAM_BYTES = 1024;

    private static final long SECOND_NANOS = 1_000_000_000;

    /** High half of the content of a PING that stands for one of the native wire. The low half is its id. */
    private static final long KEEP_ALIVE = (long) Wire.MAGIC << Integer.SIZE;

    /** Content of the PING behind the first GOAWAY. */
    private static final long DRAIN = ~KEEP_ALIVE;

    private static final String UNREAD = "the client does not read what it is sent";

    private final GrpcWire wire;
    private final ServerConnection connection;
    private final int maxMessageBytes;
    private final ToServer toServer;
    private final CallIds ids;
    private final Http2Connection.PropertyKey key;

    /** Charge for what waits for the server's credit, and for the readers of compressed messages. */
    private final Charge held;

    /** Claim for what waits until the client opens its windows, or until a message is whole. */
    private final Claim unread;

    /** Claim for the part of a frame that has arrived. */
    private final Claim partial;

    /**
     * Calls whose first frame is handed over at the end of the read, if no message comes before that. They are handed
     * over earlier if their frames have more than {@link #MAX_GATHERED_BYTES}: a short header block of HPACK can stand
     * for long metadata.
     */
    private final ArrayDeque<GrpcCall> unbegun = new ArrayDeque<>();

    private int unbegunBytes;

    private final ArrayDeque<GrpcRequest> resumable = new ArrayDeque<>();

    private @Nullable ChannelHandlerContext context;

    /** Whether a read is under way, at whose end the gathered frames are handed over. */
    private boolean isReading;

    /** Whether the server's connection is taking the gathered frames. */
    private boolean isDelivering;

    private boolean isTaskQueued;
    private boolean isInactive;

    /** Whether a frame of HTTP/2 has been read since the claim for partial frames was last looked at. */
    private boolean hasRead;

    /** Whether a message has been written to the socket since the claim for unread bytes was last looked at. */
    private boolean hasWritten;

    /** Bytes of messages that have been handed to Netty and have not been written to the socket. */
    private long unsentBytes;

    /** Bytes of messages whose parts are not complete. */
    private long incompleteBytes;

    /** Number of streams whose calls are over at the server, and which have not been closed. */
    private int endingStreams;

    /** Size of the headers that the client accepts. */
    private long maxHeaderBytes = Long.MAX_VALUE;

    private boolean isGreeted;

    /** Whether the server's first bytes, its preface, have been passed over. */
    private boolean isServerGreeted;

    /** Whether the first of the two GOAWAYs has been sent, and the client has not acknowledged the PING behind it. */
    private boolean isDraining;

    /** Whether both GOAWAYs have been sent. */
    private boolean isDrained;

    private boolean isGoAwayPassedOn;

    private int controlFrames;
    private long controlSinceNanos;

    /** Makes the handler with Netty's limits. */
    private static final class Builder extends AbstractHttp2ConnectionHandlerBuilder<GrpcConnection, Builder> {
        private final GrpcWire wire;
        private final ServerConnection server;
        private final Settings settings;

        Builder(GrpcWire wire, ServerConnection server, Settings settings) {
            this.wire = wire;
            this.server = server;
            this.settings = settings;
        }

        GrpcConnection make() {
            Http2Connection http2 = new DefaultHttp2Connection(true);
            // The window of the connection is refilled as data come. Otherwise a stream whose data wait for the server
            // would close the window for all others. The windows of the streams bound what waits.
            http2.local()
                    .flowController(new DefaultHttp2LocalFlowController(
                            http2, DefaultHttp2LocalFlowController.DEFAULT_WINDOW_UPDATE_RATIO, true));
            http2.remote()
                    .flowController(
                            new DefaultHttp2RemoteFlowController(http2, new UniformStreamByteDistributor(http2)));
            // Netty itself applies this setting only when the client has acknowledged it, which a client need not do.
            http2.remote().maxActiveStreams(settings.maxCalls());
            connection(http2);
            initialSettings(new Http2Settings()
                    .maxConcurrentStreams(settings.maxCalls())
                    .initialWindowSize(STREAM_WINDOW_BYTES)
                    .maxHeaderListSize(MAX_HEADER_BYTES));
            headerSensitivityDetector((name, value) -> GrpcHeaders.isSensitive(name));
            decoderEnforceMaxRstFramesPerWindow(FloodGuard.MAX_CANCELS_PER_SECOND, 1);
            encoderEnforceMaxRstFramesPerWindow(FloodGuard.MAX_CANCELS_PER_SECOND, 1);
            return build();
        }

        @Override
        protected GrpcConnection build(
                Http2ConnectionDecoder decoder, Http2ConnectionEncoder encoder, Http2Settings initial) {
            return new GrpcConnection(decoder, encoder, initial, wire, server, settings);
        }
    }

    private GrpcConnection(
            Http2ConnectionDecoder decoder,
            Http2ConnectionEncoder encoder,
            Http2Settings initial,
            GrpcWire wire,
            ServerConnection connection,
            Settings server) {
        // Without the first flag, Netty would delay a close of the channel until the streams have ended. The server has
        // waited for the calls before that. The second flag is about connections that begin later than their handler.
        super(decoder, encoder, initial, true, false);
        this.wire = wire;
        this.connection = connection;
        this.maxMessageBytes = server.maxMessageBytes();
        this.toServer = new ToServer(connection.channel.alloc(), this::framesAdded);
        this.ids = new CallIds(server.maxCalls(), connection.account.charge(Resource.TABLE_BYTES));
        this.key = connection().newKey();
        this.held = connection.account.charge(Resource.ITEM_BYTES_IN);
        this.unread =
                new Claim(connection.account, Resource.QUEUE_BYTES, connection.loop(), () -> connection.abort(UNREAD));
        this.partial = new Claim(
                connection.account,
                Resource.FRAME_BYTES,
                connection.loop(),
                () -> connection.abort("no room for the first bytes of a frame that has not arrived in full"));
        decoder.frameListener(new GrpcFrames(this));
        connection().addListener(new Http2ConnectionAdapter() {
            @Override
            public void onStreamClosed(Http2Stream closed) {
                streamClosed(closed);
            }

            @Override
            public void onStreamRemoved(Http2Stream removed) {
                goAwayIfDrained();
            }
        });
    }

    /** Returns the translator of a connection. */
    static GrpcConnection of(GrpcWire wire, ServerConnection connection, Settings server) {
        return new Builder(wire, connection, server).make();
    }

    // ---- for the other classes of the connection

    GrpcWire wire() {
        return wire;
    }

    ToServer toServer() {
        return toServer;
    }

    CallIds ids() {
        return ids;
    }

    ByteBufAllocator allocator() {
        return connection.channel.alloc();
    }

    /** Returns the largest size, in bytes, of a message that the server takes. */
    int maxMessageBytes() {
        return maxMessageBytes;
    }

    /** Returns the size of the headers that the client accepts. */
    long maxHeaderBytes() {
        return maxHeaderBytes;
    }

    @Nullable
    GrpcCall call(int streamId) {
        Http2Stream stream = connection().stream(streamId);
        return stream == null ? null : stream.getProperty(key);
    }

    /** Begins a call, whose stream has just been opened. */
    void begin(GrpcCall call, boolean takesItems) {
        call.stream().setProperty(key, call);
        ids.put(call);
        if (takesItems) {
            call.request().beginWithoutMessage();
        } else {
            unbegun.add(call);
            unbegunBytes += call.request().preludeBytes();
            if (unbegunBytes >= MAX_GATHERED_BYTES) {
                beginUnbegun();
            }
        }
    }

    private void beginUnbegun() {
        for (GrpcCall call = unbegun.poll(); call != null; call = unbegun.poll()) {
            call.request().beginWithoutMessage();
        }
        unbegunBytes = 0;
    }

    /** Returns whether the headers that end a stream have been handed to Netty. */
    boolean isAnswered(int streamId) {
        Http2Stream stream = connection().stream(streamId);
        return stream != null && !stream.state().localSideOpen();
    }

    /**
     * Charges the connection for bytes that wait.
     *
     * @return false if there is no room
     */
    boolean hold(int bytes) {
        return held.add(bytes);
    }

    void unhold(int bytes) {
        held.release(bytes);
        if (held.held() == 0) {
            // This also gives back the step that is kept otherwise.
            held.release();
        }
    }

    void resumeLater(GrpcRequest request) {
        resumable.add(request);
        runLater();
    }

    /** Opens the window of a stream by bytes that have waited. */
    void consumed(GrpcCall call, int bytes) {
        try {
            if (bytes > 0 && !call.isStreamClosed()) {
                decoder().flowController().consumeBytes(call.stream(), bytes);
            }
        } catch (Http2Exception e) {
            onError(context(), true, e);
        }
    }

    /** Counts bytes of messages whose parts are not complete; a negative number is subtracted. */
    void putTogether(int bytes) {
        incompleteBytes += bytes;
    }

    /** Called when the server has sent the final frame of a call, or never gets to know of it. */
    void overAtServer(GrpcCall call) {
        ids.free(call);
        if (!call.isStreamClosed()) {
            endingStreams++;
        }
    }

    private void streamClosed(Http2Stream stream) {
        GrpcCall call = stream.getProperty(key);
        if (call != null) {
            if (call.isOverAtServer()) {
                endingStreams--;
            }
            call.onStreamClosed();
        }
    }

    // ---- from the client

    /** Called when settings of the client have come. With the first ones, the connection to the server begins. */
    void onSettings(Http2Settings settings) throws Http2Exception {
        countControlFrame();
        Long max = settings.maxHeaderListSize();
        if (max != null) {
            maxHeaderBytes = max;
        }
        if (!isGreeted) {
            isGreeted = true;
            toServer.greet();
        }
    }

    /**
     * Counts a frame that the server answers, a PING or settings, and ends the connection if there are too many. Each
     * message that the server sends allows further ones, since clients measure their way to the server by PINGs then.
     */
    void countControlFrame() throws Http2Exception {
        if (++controlFrames > FloodGuard.MAX_PINGS_PER_SECOND) {
            long now = connection.nanoTime();
            if (now - controlSinceNanos < SECOND_NANOS) {
                throw Http2Exception.connectionError(Http2Error.ENHANCE_YOUR_CALM, "too_many_pings");
            }
            controlSinceNanos = now;
            controlFrames = 0;
        }
    }

    void onPingAck(long content) {
        if (content == DRAIN) {
            if (isDraining) {
                isDraining = false;
                goAway(connection().remote().lastStreamCreated());
                isDrained = true;
                goAwayIfDrained();
            }
        } else if ((content ^ KEEP_ALIVE) >>> Integer.SIZE == 0) {
            toServer.empty(Wire.PONG, (int) content);
        }
    }

    /** Answers a stream for which there is no call: by an error of gRPC, or by a status of HTTP. */
    void refuse(int streamId, Http2Headers answer) {
        Http2Stream stream = connection().stream(streamId);
        if (stream != null) {
            sendLast(stream, answer);
        }
    }

    /** Resets a stream for which there is no call, and of which nothing has been executed. */
    void reset(int streamId, Http2Error error) {
        resetStream(context(), streamId, error.code(), context().newPromise());
    }

    // ---- to the client

    Http2Headers trailers(RPCXException error, boolean isWhole) {
        return Trailers.of(error, isWhole, wire.typePrefix(), maxHeaderBytes);
    }

    void sendHeaders(GrpcCall call) {
        Http2Headers headers = new DefaultHttp2Headers(false).status(GrpcHeaders.STATUS_OK);
        headers.set(GrpcHeaders.CONTENT_TYPE, GrpcHeaders.GRPC);
        if (call.answersInGzip()) {
            headers.set(GrpcHeaders.ENCODING, GrpcHeaders.GZIP);
        }
        encoder()
                .writeHeaders(
                        context(),
                        call.stream().id(),
                        headers,
                        0,
                        false,
                        context().newPromise());
    }

    void sendData(GrpcCall call, ByteBuf message) {
        int bytes = message.readableBytes();
        unsentBytes += bytes;
        controlFrames = 0;
        encoder()
                .writeData(
                        context(),
                        call.stream().id(),
                        message,
                        0,
                        false,
                        context().newPromise())
                .addListener(written -> {
                    unsentBytes -= bytes;
                    hasWritten = true;
                    call.onWritten(bytes);
                });
    }

    void sendTrailers(GrpcCall call, Http2Headers trailers) {
        sendLast(call.stream(), trailers);
    }

    /**
     * Sends the headers that end a stream. If the client has not ended its own side then, the stream is reset, so that
     * what the client still sends is not read. Source: RFC 9113, section 8.1.
     */
    private void sendLast(Http2Stream stream, Http2Headers headers) {
        encoder()
                .writeHeaders(
                        context(), stream.id(), headers, 0, true, context().newPromise())
                .addListener(written -> {
                    if (stream.state().remoteSideOpen()) {
                        Http2Error error = written.isSuccess() ? Http2Error.NO_ERROR : Http2Error.INTERNAL_ERROR;
                        resetStream(
                                context(), stream.id(), error.code(), context().newPromise());
                        context().flush();
                    }
                });
    }

    private void goAway(int lastStream) {
        goAway(
                context(),
                lastStream,
                Http2Error.NO_ERROR.code(),
                Unpooled.EMPTY_BUFFER,
                context().newPromise());
    }

    // ---- from the server

    @Override
    public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) throws Exception {
        ByteBuf frames = (ByteBuf) message;
        if (!frames.isReadable()) {
            // Whoever writes an empty buffer wants to know when all that came before it has been written.
            encoder().flowController().writePendingBytes();
            ctx.write(message, promise);
            return;
        }
        try {
            if (!isServerGreeted) {
                isServerGreeted = true;
                frames.skipBytes(Wire.PREFACE_BYTES);
            }
            while (frames.isReadable()) {
                int length = (int) Varint.read(frames);
                int head = frames.readUnsignedByte();
                int id = frames.readInt();
                onFrame(head, id, frames.readSlice(length - Wire.HEAD_BYTES));
            }
        } finally {
            frames.release();
        }
        promise.trySuccess();
    }

    private void onFrame(int head, int id, ByteBuf payload) {
        switch (head & Wire.TYPE_MASK) {
            case Wire.PING ->
                encoder()
                        .writePing(
                                context(),
                                false,
                                KEEP_ALIVE | id & 0xFFFF_FFFFL,
                                context().newPromise());
            case Wire.GOAWAY -> {
                isDraining = true;
                goAway(Integer.MAX_VALUE);
                encoder().writePing(context(), false, DRAIN, context().newPromise());
            }
            case Wire.ERROR, Wire.REPLY, Wire.PART, Wire.ITEM, Wire.CREDIT -> {
                GrpcCall call = ids.find(id);
                if (call != null) {
                    call.onFrame(head, payload);
                } else if (id == 0) {
                    RPCXException why = WireError.read(payload);
                    boolean isLoad = why.code() == RPCXException.Code.OVERLOADED;
                    sendReason(isLoad ? Http2Error.ENHANCE_YOUR_CALM : Http2Error.PROTOCOL_ERROR, why.getMessage());
                }
            }
            default -> {
                // A client of gRPC knows the methods by their names, and has no use for the server's settings.
            }
        }
    }

    /**
     * Sends a GOAWAY that says why the connection ends. The method {@code goAway} is not used, since it closes the
     * channel when the frame has been written, and the frame could be lost then.
     */
    private void sendReason(Http2Error error, String why) {
        ByteBuf text = Unpooled.copiedBuffer(why, StandardCharsets.UTF_8);
        encoder()
                .writeGoAway(
                        context(),
                        connection().remote().lastStreamCreated(),
                        error.code(),
                        text,
                        context().newPromise());
    }

    /** Passes on the client's part of a drain, when both GOAWAYs have been sent and no stream is left. */
    private void goAwayIfDrained() {
        if (isDrained && !isGoAwayPassedOn && !isInactive && connection().numActiveStreams() == 0) {
            isGoAwayPassedOn = true;
            toServer.empty(Wire.GOAWAY, 0);
        }
    }

    // ---- the pipeline

    private ChannelHandlerContext context() {
        return Objects.requireNonNull(context);
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) throws Exception {
        context = ctx;
        super.handlerAdded(ctx);
        int more = CONNECTION_WINDOW_BYTES
                - decoder().flowController().windowSize(connection().connectionStream());
        decoder().flowController().incrementWindowSize(connection().connectionStream(), more);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) throws Exception {
        if (connection.isClosed()) {
            ((ByteBuf) message).release();
            return;
        }
        isReading = true;
        super.channelRead(ctx, message);
    }

    @Override
    protected void decode(ChannelHandlerContext ctx, ByteBuf in, List<Object> out) throws Exception {
        if (connection.isClosed()) {
            in.skipBytes(in.readableBytes());
            return;
        }
        int before = in.readableBytes();
        super.decode(ctx, in, out);
        hasRead |= in.readableBytes() < before;
    }

    /**
     * Hands the gathered frames over, and flushes. The method of the superclass is not called, because it reads on even
     * if the server's connection has stopped reading.
     */
    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        discardSomeReadBytes();
        beginUnbegun();
        deliver();
        isReading = false;
        claimPartial();
        try {
            ctx.fireChannelReadComplete();
        } finally {
            flush(ctx);
        }
    }

    private void framesAdded() {
        if (isInactive) {
            toServer.drop();
        } else if (!isReading) {
            runLater();
        } else if (toServer.bytes() >= MAX_GATHERED_BYTES) {
            deliver();
        }
    }

    private void deliver() {
        if (isDelivering) {
            return;
        }
        isDelivering = true;
        try {
            for (ByteBuf frames = toServer.take(); frames != null; frames = toServer.take()) {
                context().fireChannelRead(frames);
            }
        } finally {
            isDelivering = false;
        }
    }

    private void runLater() {
        if (isTaskQueued || isInactive) {
            return;
        }
        isTaskQueued = true;
        try {
            connection.loop().execute(this::runOwn);
        } catch (RejectedExecutionException ended) {
            // The event loop ends, and ends all its connections.
            isTaskQueued = false;
        }
    }

    /** Hands over what has been gathered outside of a read, such as credit, and what has waited for credit. */
    private void runOwn() {
        isTaskQueued = false;
        if (isInactive || connection.isClosed()) {
            toServer.drop();
            return;
        }
        isReading = true;
        try {
            for (GrpcRequest each = resumable.poll(); each != null; each = resumable.poll()) {
                each.resume();
            }
            deliver();
        } catch (Throwable t) {
            connection.failInternally(t);
        } finally {
            isReading = false;
        }
        try {
            context().fireChannelReadComplete();
        } finally {
            flush(context());
        }
    }

    @Override
    public void flush(ChannelHandlerContext ctx) {
        super.flush(ctx);
        claimUnread();
    }

    /** Updates the claim for what waits for the client. What is in the queue of the socket has a claim of its own. */
    private void claimUnread() {
        if (isInactive) {
            return;
        }
        ChannelOutboundBuffer queue = connection.channel.unsafe().outboundBuffer();
        long queued = queue == null ? 0 : queue.totalPendingWriteBytes();
        long bytes = Math.max(0, unsentBytes - queued) + incompleteBytes + (long) STREAM_BYTES * endingStreams;
        if (bytes <= UnchargedAllowance.MAX_SMALL_BYTES) {
            unread.release();
        } else {
            set(unread, bytes, hasWritten, UNREAD);
        }
        hasWritten = false;
    }

    private void claimPartial() {
        int bytes = isInactive ? 0 : actualReadableBytes();
        if (bytes <= UnchargedAllowance.MAX_SMALL_BYTES) {
            partial.release();
        } else {
            set(partial, bytes, hasRead, "no room for the part of a frame that has arrived");
        }
        hasRead = false;
    }

    /** Sets a claim. If there is no room, the connection ends in a task of its own, since it can be writing now. */
    private void set(Claim claim, long bytes, boolean isRenewed, String why) {
        long now = connection.nanoTime();
        if (isRenewed) {
            claim.renew(now);
        }
        if (bytes != claim.bytes() && !claim.set(bytes, now)) {
            connection.inLoopOrHere(() -> connection.abort(why));
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) throws Exception {
        isInactive = true;
        unread.close();
        partial.close();
        unbegun.clear();
        resumable.clear();
        try {
            super.channelInactive(ctx);
        } finally {
            toServer.drop();
            held.release();
            ids.close();
        }
    }

    /**
     * Ends the connection, because the client has broken a rule of HTTP/2 or because of a fault of this side. The
     * server's connection closes the socket, in a way that lets the reason arrive.
     */
    @Override
    protected void onConnectionError(
            ChannelHandlerContext ctx, boolean outbound, Throwable cause, @Nullable Http2Exception fault) {
        if (connection.isClosed()) {
            return;
        }
        if (fault == null) {
            connection.failInternally(cause);
            return;
        }
        String why = VisibleText.line(ThrowableText.message(fault), ThrowableText.MAX_WHY);
        sendReason(fault.error(), why);
        connection.close(why);
    }
}
