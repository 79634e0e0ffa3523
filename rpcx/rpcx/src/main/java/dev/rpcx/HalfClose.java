package dev.rpcx;

import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Closes a connection so that what was written last arrives. A socket that is closed with bytes unread, or that gets
 * bytes afterwards, is reset, and a reset throws away what the peer has not read yet. So the end of the stream goes out
 * first (within TLS its close_notify before it), and what still comes is read and thrown away, until the peer closes
 * too or its time is over.
 */
final class HalfClose {
    /**
     * What was written last may take so long to leave; a peer that does not read it must not hold the connection.
     * Source: nginx, lingering_time, shortened.
     */
    private static final long LEAVE_NANOS = TimeUnit.SECONDS.toNanos(2);

    /** What comes behind the end of the stream is read for so long at most. Source: nginx, lingering_timeout, shortened. */
    private static final long DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Channel channel;
    private final Charge timers;
    private @Nullable Future<?> timer;

    private HalfClose(Channel channel, Account account) {
        this.channel = channel;
        this.timers = account.charge(Resource.TIMERS);
    }

    /** On the event loop, once for a channel, whose handler from here on throws away what it reads. */
    static void of(Channel channel, Account account) {
        if (channel.isActive() && !channel.eventLoop().isShuttingDown()) {
            new HalfClose(channel, account).begin();
        } else {
            channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        }
    }

    private void begin() {
        timers.add(1);
        closeAfter(LEAVE_NANOS);
        channel.closeFuture().addListener(over -> {
            if (timer != null) {
                timer.cancel(false);
            }
            timers.release();
        });
        OwedTime.of(channel).setReading(true);
        // behind all that was written: the end would overtake what the socket has not taken yet
        then(channel.writeAndFlush(Unpooled.EMPTY_BUFFER), this::endTls);
    }

    private void endTls() {
        SslHandler tls = channel.pipeline().get(SslHandler.class);
        if (tls == null) {
            endOutput();
        } else {
            then(tls.closeOutbound(), this::endOutput);
        }
    }

    private void endOutput() {
        if (channel instanceof DuplexChannel socket) {
            then(socket.shutdownOutput(), () -> closeAfter(DISCARD_NANOS));
        } else {
            channel.close();
        }
    }

    private void then(ChannelFuture step, Runnable next) {
        step.addListener(done -> {
            if (done.isSuccess()) {
                next.run();
            } else {
                channel.close();
            }
        });
    }

    private void closeAfter(long nanos) {
        if (timer != null) {
            timer.cancel(false);
        }
        if (channel.isOpen()) {
            timer = channel.eventLoop().schedule(() -> SocketQueue.closeNow(channel), nanos, TimeUnit.NANOSECONDS);
        }
    }
}
