package dev.rpcx.internal.server;

import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Finds out from the first byte of a new connection which wire the client speaks: the native one, the classic one, or a
 * {@link TranslatedWire} if the server has one. When that byte has arrived, a {@link ServerConnection} or a
 * {@link ClassicServerConnection} replaces the sniffer in the pipeline. For a translated wire, its translator comes in
 * front of the {@code ServerConnection}. No message of the classic wire begins with the first byte of another wire. If
 * the first byte does not arrive within {@link #silentNanos}, the connection is closed. With TLS, the handshake is part
 * of this time.
 */
public final class Sniffer extends ChannelInboundHandlerAdapter {
    /**
     * Maximum time for the first byte of a connection to arrive, in nanoseconds. The preface, with which a native
     * connection begins, has to be complete within the same time. If the server's keepAlive time is shorter, that time
     * is used instead. The value was chosen below nginx's client_header_timeout.
     */
    private static final long MAX_SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final int NATIVE_FIRST_BYTE = Wire.MAGIC >>> 24;

    private final ServerCore server;
    private final Account account;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private long takenNanos;

    /** Whether the connection object could not be created, so that all further bytes are dropped. */
    private boolean isOver;

    public Sniffer(ServerCore server, Account account) {
        this.server = server;
        this.account = account;
        this.timers = account.charge(Resource.TIMERS);
    }

    @Override
    public void channelActive(ChannelHandlerContext ctx) {
        takenNanos = ctx.channel().eventLoop().ticker().nanoTime();
        timer = ctx.executor()
                .schedule(() -> SocketQueue.closeNow(ctx.channel()), silentNanos(server), TimeUnit.NANOSECONDS);
        timers.add(1);
    }

    public static long silentNanos(ServerCore server) {
        return Math.min(MAX_SILENT_NANOS, server.keepAliveNanos());
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf first = (ByteBuf) message;
        if (isOver || !first.isReadable()) {
            first.release();
            return;
        }
        boolean isBegun = false;
        try {
            ctx.pipeline().replace(this, null, reader(ctx, first));
            isBegun = true;
        } finally {
            if (!isBegun) {
                // The connection object could not be created, for example for lack of memory. The channel is closed by
                // exceptionCaught or by the timer.
                isOver = true;
                first.release();
            }
        }
        stopTimer();
        // The bytes go to the connection, which has taken the place of this handler. If they went to the head of the
        // pipeline instead, TLS would decrypt them a second time.
        ctx.fireChannelRead(first);
    }

    /**
     * Returns the handler that reads the bytes of the connection. For a translated wire, this is the translator, and
     * this method has added the connection itself behind this sniffer.
     */
    private ChannelHandler reader(ChannelHandlerContext ctx, ByteBuf first) {
        int firstByte = first.getUnsignedByte(first.readerIndex());
        TranslatedWire translated = server.translated();
        boolean isTranslated = translated != null && translated.isBegunBy(firstByte);
        if (firstByte != NATIVE_FIRST_BYTE && !isTranslated) {
            return new ClassicServerConnection(ctx.channel(), server, account);
        }
        ServerConnection connection = new ServerConnection(ctx.channel(), server, account, takenNanos);
        if (firstByte == NATIVE_FIRST_BYTE || translated == null) {
            return connection;
        }
        ctx.pipeline().addLast(connection);
        return translated.translator(connection, server.settings(), first);
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        stopTimer();
    }

    private void stopTimer() {
        if (timer != null) {
            timer.cancel(false);
            timers.release();
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        ctx.close();
    }
}
