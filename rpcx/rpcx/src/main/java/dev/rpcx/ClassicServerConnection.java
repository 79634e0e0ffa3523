package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.security.Principal;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A server's connection on the classic wire, the paper's: length-prefixed {@code RPCXRequest} and {@code RPCXReply}. It has no handshake,
 * no cancel and no remaining time; a call has the server's own time.
 */
final class ClassicServerConnection extends ChannelInboundHandlerAdapter implements ServedConnection {
    private static final long CALL_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final Channel channel;
    private final Server server;
    private final Account account;
    private final ByteBuf cut = Unpooled.buffer(256);
    private final AtomicInteger underWay = new AtomicInteger();
    private volatile boolean leaving;

    ClassicServerConnection(Channel channel, Server server, Account account) {
        this.channel = channel;
        this.server = server;
        this.account = account;
        server.greeted(channel, this);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        try {
            ClassicWire.cut(cut, in, server.settings().maxMessageBytes(), this::onRequest);
        } catch (WireFault fault) {
            ctx.close();
        } finally {
            in.release();
        }
    }

    private void onRequest(ByteBuf frame) {
        ClassicWire.Request request = ClassicWire.readRequest(frame);
        ServerMethod method = server.method(MethodDictionary.key(request.service(), request.method()));
        if (method == null) {
            reply(request.id(), null, refused(RPCXException.Code.NOT_FOUND, "no such service or method"));
        } else if (method.brings() || method.items() != null) {
            reply(request.id(), null, refused(RPCXException.Code.INVALID, "a stream needs the native wire"));
        } else if (leaving) {
            reply(request.id(), null, refused(RPCXException.Code.UNAVAILABLE, "the server is closing"));
        } else if (underWay.get() >= server.settings().maxCalls()) {
            reply(request.id(), null, refused(RPCXException.Code.OVERLOADED, "too many calls under way"));
        } else if (method.admission() != null && !method.admission().enter()) {
            reply(request.id(), null, refused(RPCXException.Code.OVERLOADED, "the server is overloaded"));
        } else {
            underWay.incrementAndGet();
            long now = nanoTime();
            ClassicServerCall call = new ClassicServerCall(this, method, request, now, now + CALL_NANOS);
            if (method.place() == RunOn.Place.EVENT_LOOP) {
                call.run();
                return;
            }
            try {
                server.threads().run(channel.eventLoop(), method.place(), call);
            } catch (RejectedExecutionException e) {
                call.finished(null, refused(RPCXException.Code.UNAVAILABLE, "the server is closing"));
            }
        }
    }

    private static RPCXException refused(RPCXException.Code code, String text) {
        return new RPCXException(code, text, RPCXException.Executed.NOT_EXECUTED);
    }

    long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }

    CallContext context(long deadlineNanos) {
        Principal peer = Server.peer(channel);
        return new CallContext(
                deadlineNanos, Metadata.EMPTY, peer, channel.eventLoop().ticker());
    }

    /** From any thread. */
    void finished(long id, byte @Nullable [] result, @Nullable RPCXException error) {
        reply(id, result, error);
        if (underWay.decrementAndGet() == 0 && leaving) {
            channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        }
    }

    private void reply(long id, byte @Nullable [] result, @Nullable RPCXException error) {
        ByteBuf reply = ClassicWire.reply(id, result, error);
        int bytes = reply.readableBytes();
        Charge waiting = account.charge(Resource.REPLY_BYTES);
        if (bytes <= Outbound.SMALL_BYTES && channel.isWritable()) {
            channel.writeAndFlush(reply, channel.voidPromise());
        } else if (waiting.add(bytes)) {
            channel.writeAndFlush(reply).addListener(left -> waiting.release());
        } else {
            // this wire has no way to tell one call that its reply is too much to hold
            reply.release();
            channel.close();
        }
    }

    @Override
    public void leave() {
        channel.eventLoop().execute(() -> {
            leaving = true;
            if (underWay.get() == 0) {
                channel.close();
            }
        });
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        channel.config().setAutoRead(channel.isWritable());
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        ctx.close();
    }
}
