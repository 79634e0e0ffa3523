package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** A client's connection on the classic wire, as in the paper: a random long for each call, and a map from it to the call's future. */
final class ClassicClientConnection extends ChannelInboundHandlerAdapter {
    /** Builds the request of a call, once its id is known. */
    interface Request {
        ByteBuf of(long id);
    }

    private final Channel channel;
    private final String peer;
    private final ByteBuf cut = Unpooled.buffer(256);
    private final Map<Long, RPCXFuture<byte[]>> underWay = new ConcurrentHashMap<>();
    private volatile boolean closed;

    ClassicClientConnection(Channel channel, String peer) {
        this.channel = channel;
        this.peer = peer;
    }

    boolean isUsable() {
        return !closed;
    }

    /** From any thread. The future ends with the bytes of the result, or an {@link RPCXException}. */
    RPCXFuture<byte[]> send(Request request, long deadlineNanos) {
        RPCXFuture<byte[]> reply = new RPCXFuture<>();
        long id = ThreadLocalRandom.current().nextLong();
        while (underWay.putIfAbsent(id, reply) != null) {
            id = ThreadLocalRandom.current().nextLong();
        }
        long taken = id;
        Future<?> timer = channel.eventLoop()
                .schedule(
                        () -> reply.completeExceptionally(new RPCXException(
                                RPCXException.Code.DEADLINE_EXCEEDED,
                                peer + ": no reply in time",
                                RPCXException.Executed.MAYBE)),
                        Math.max(0, deadlineNanos - channel.eventLoop().ticker().nanoTime()),
                        TimeUnit.NANOSECONDS);
        reply.whenComplete((result, thrown) -> {
            underWay.remove(taken);
            // which would keep the reply until then
            timer.cancel(false);
        });
        channel.writeAndFlush(request.of(id)).addListener(written -> {
            if (!written.isSuccess()) {
                reply.completeExceptionally(lost(RPCXException.Executed.NOT_EXECUTED));
            }
        });
        return reply;
    }

    private RPCXException lost(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.UNAVAILABLE, peer + ": the connection ended", executed);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        try {
            ClassicWire.cut(cut, in, Wire.MAX_MESSAGE_BYTES, this::onReply);
        } catch (WireFault fault) {
            ctx.close();
        } finally {
            in.release();
        }
    }

    private void onReply(ByteBuf frame) {
        ClassicWire.Reply reply = ClassicWire.readReply(frame);
        RPCXFuture<byte[]> waiting = underWay.get(reply.id());
        if (waiting == null) {
            return;
        }
        RPCXException error = reply.error();
        if (error == null) {
            waiting.complete(reply.result());
        } else {
            waiting.completeExceptionally(error);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        closed = true;
        underWay.values().forEach(waiting -> waiting.completeExceptionally(lost(RPCXException.Executed.MAYBE)));
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        ctx.close();
    }
}
