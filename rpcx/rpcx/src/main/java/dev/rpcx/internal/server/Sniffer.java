package dev.rpcx.internal.server;

import dev.rpcx.internal.io.SocketQueue;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandler;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * First handler of a new connection, or the first behind those of TLS. The first byte tells the native wire from the
 * classic one, whose frames begin with the high byte of a length that can never be as large. A connection that sends
 * nothing is closed.
 */
public final class Sniffer extends ChannelInboundHandlerAdapter {
    /**
     * Maximum time for the first byte, and for the whole preface; less if the server's keepAlive is less. Source:
     * nginx's client_header_timeout, shortened; all that a silent connection costs is one of the server's connections.
     */
    private static final long SILENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final int NATIVE_FIRST_BYTE = Wire.MAGIC >>> 24;

    private final ServerCore server;
    private final Account account;
    private final Charge timers;
    private @Nullable ScheduledFuture<?> timer;
    private long takenNanos;

    /** Whether the connection could not begin: what still comes is from the middle of its stream, and is dropped. */
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
        return Math.min(SILENT_NANOS, server.keepAliveNanos());
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
            ChannelInboundHandler connection = first.getUnsignedByte(first.readerIndex()) == NATIVE_FIRST_BYTE
                    ? new ServerConnection(ctx.channel(), server, account, takenNanos)
                    : new ClassicServerConnection(ctx.channel(), server, account);
            ctx.pipeline().replace(this, null, connection);
            isBegun = true;
        } finally {
            if (!isBegun) {
                // For example there is no memory. exceptionCaught closes the channel, or else the timer does.
                isOver = true;
                first.release();
            }
        }
        stopTimer();
        // The bytes go on from here and not from the pipeline's head: what TLS has decrypted must not pass it again.
        ctx.fireChannelRead(first);
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
