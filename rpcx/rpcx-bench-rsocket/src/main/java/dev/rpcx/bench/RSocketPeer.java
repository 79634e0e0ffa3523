package dev.rpcx.bench;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.rpcx.bench.proto.Rows;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.frame.decoder.PayloadDecoder;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.ByteBufPayload;
import io.rsocket.util.DefaultPayload;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Peer that calls with RSocket's request/response over TCP, on one connection and with zero-copy payloads, as the
 * documentation of RSocket advises. Texts are in UTF-8. Rows are in Protobuf, with the same generated messages as for
 * gRPC.
 */
public final class RSocketPeer implements Peer {
    private static final int MAX_FRAME_BYTES = 16 * 1024 * 1024;

    @Override
    public String name() {
        return "rsocket";
    }

    @Override
    public AutoCloseable serve(int port) {
        CloseableChannel server = RSocketServer.create(SocketAcceptor.forRequestResponse(RSocketPeer::answer))
                .payloadDecoder(PayloadDecoder.ZERO_COPY)
                .fragment(0)
                .maxInboundPayloadSize(MAX_FRAME_BYTES)
                .bindNow(TcpServerTransport.create("127.0.0.1", port));
        return server::dispose;
    }

    /** Rows come with metadata, texts without. */
    private static Mono<Payload> answer(Payload payload) {
        try {
            if (payload.hasMetadata()) {
                Rows rows = Rows.parseFrom(payload.getData());
                return Mono.just(DefaultPayload.create(
                        ProtobufRows.toMessage(ProtobufRows.fromMessage(rows)).toByteArray()));
            }
            return Mono.just(ByteBufPayload.create(payload.getDataUtf8()));
        } catch (InvalidProtocolBufferException e) {
            return Mono.error(e);
        } finally {
            payload.release();
        }
    }

    @Override
    public Caller connect(int port) {
        RSocket socket = RSocketConnector.create()
                .payloadDecoder(PayloadDecoder.ZERO_COPY)
                .maxInboundPayloadSize(MAX_FRAME_BYTES)
                .connect(TcpClientTransport.create("127.0.0.1", port))
                .block();
        if (socket == null) {
            throw new IllegalStateException("no connection");
        }
        return new Client(socket);
    }

    private record Client(RSocket socket) implements Caller {
        private static String text(Payload payload) {
            try {
                return payload.getDataUtf8();
            } finally {
                payload.release();
            }
        }

        @Override
        public String hello(String text) {
            String reply = socket.requestResponse(ByteBufPayload.create(text))
                    .map(Client::text)
                    .block();
            if (reply == null) {
                throw new IllegalStateException("no reply");
            }
            return reply;
        }

        @Override
        public void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> callback) {
            socket.requestResponse(ByteBufPayload.create(text))
                    .map(Client::text)
                    .subscribe(reply -> callback.accept(reply, null), failure -> callback.accept(null, failure));
        }

        @Override
        public List<Row> records(List<Row> rows) throws InvalidProtocolBufferException {
            Payload reply = socket.requestResponse(
                            DefaultPayload.create(ProtobufRows.toMessage(rows).toByteArray(), new byte[] {1}))
                    .block();
            if (reply == null) {
                throw new IllegalStateException("no reply");
            }
            try {
                return ProtobufRows.fromMessage(Rows.parseFrom(reply.getData()));
            } finally {
                reply.release();
            }
        }

        @Override
        public void close() {
            socket.dispose();
        }
    }
}
