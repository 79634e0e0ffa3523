package dev.rpcx.grpc;

import dev.rpcx.internal.server.ServerConnection;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.ReferenceCountUtil;
import java.nio.charset.StandardCharsets;

/**
 * Answers a client that speaks another version of HTTP than 2, and ends its connection. Nothing of the request is read.
 */
final class HttpRefusal extends ChannelInboundHandlerAdapter {
    private static final String TEXT = "this port speaks gRPC over HTTP/2, without an upgrade from HTTP/1\n";

    private static final String HEAD = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n";

    private static final byte[] ANSWER =
            (HEAD + "Content-Length: " + TEXT.length() + "\r\n\r\n" + TEXT).getBytes(StandardCharsets.US_ASCII);

    private final ServerConnection connection;

    HttpRefusal(ServerConnection connection) {
        this.connection = connection;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ReferenceCountUtil.release(message);
        if (!connection.isClosed()) {
            ctx.writeAndFlush(Unpooled.wrappedBuffer(ANSWER));
            connection.close("the client does not speak HTTP/2");
        }
    }
}
