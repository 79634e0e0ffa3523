package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.epoll.EpollTcpInfo;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.AttributeKey;
import io.netty.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Closes a connection so that what was written last arrives. A socket that is closed with bytes unread, or that gets
 * bytes afterwards, is reset, and a reset throws away what the peer has not read yet. So the end of the stream goes out
 * first (within TLS its close_notify before it), and what still comes is read and thrown away, until the peer closes
 * too or its time is over.
 *
 * <p>What was written last may be a large reply that the peer reads slowly. It leaves for as long as the peer takes
 * some of it now and then, and no longer than whose channel this is gives it: see {@link #allow}. It has left once the
 * peer's system has it, and not once the system here has: between the two there may be seconds of a slow way.
 */
final class HalfClose {
    private static final AttributeKey<LongSupplier> ALLOWED = AttributeKey.valueOf(HalfClose.class, "allowed");

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * A peer that takes nothing of what was written last in 2 s must not hold the connection. Source: nginx,
     * lingering_time, shortened. Looks are counted, and not time, since a loop that was kept from a look was kept from
     * its sockets too.
     */
    private static final int FIRST_LOOKS = 4;

    /**
     * One that has taken some has 10 s to take more. A system takes up to 64 KiB at once of what leaves, and a reader
     * of 16 KiB a second needs 4 s for them. Source: as the silence within a frame of the classic wire.
     */
    private static final int MORE_LOOKS = 20;

    /** It has that time all the same, where the owner allows less. */
    private static final long LEAVE_NANOS = FIRST_LOOKS * LOOK_NANOS;

    /** What comes behind the end of the stream is read for so long at most. Source: nginx, lingering_timeout, shortened. */
    private static final long DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** State of a socket whose end the peer's system has not confirmed. Source: Linux, tcp_states.h. */
    private static final int FIN_WAIT_1 = 4;

    private final Channel channel;
    private final Charge timers;
    private final long beganNanos;
    private @Nullable Future<?> timer;

    /** What the last look saw: bytes in the queue, and the rest of its first message, which leaves piece by piece. */
    private long queued;

    private long restOfFirst;

    /** So many looks in a row may find what the last one saw. */
    private int looksLeft = FIRST_LOOKS;

    /** The end of the output is in the system's hands, and nothing in the queue. */
    private boolean isWritten;

    /** Segments that were on the way to the peer at the last look. */
    private long onTheWay;

    private HalfClose(Channel channel, Account account) {
        this.channel = channel;
        this.timers = account.charge(Resource.TIMERS);
        this.beganNanos = nanoTime();
    }

    /**
     * Says how long what is written last may take to leave, while the peer takes some of it; without this 2 s. On any
     * thread.
     *
     * @param nanos from the begin of the half close; asked anew twice a second, on the event loop
     */
    static void allow(Channel channel, LongSupplier nanos) {
        channel.attr(ALLOWED).set(nanos);
    }

    /**
     * On the event loop, once for a channel, whose handler from here on throws away what it reads. Where this throws,
     * the channel is closed: nobody else would do that.
     */
    static void of(Channel channel, Account account) {
        boolean isBegun = false;
        try {
            if (channel.isActive() && !channel.eventLoop().isShuttingDown()) {
                new HalfClose(channel, account).begin();
            } else {
                channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
            }
            isBegun = true;
        } finally {
            if (!isBegun) {
                SocketQueue.closeNow(channel);
            }
        }
    }

    private void begin() {
        // first: what follows may fail, and the channel is closed over it
        channel.closeFuture().addListener(over -> {
            if (timer != null) {
                timer.cancel(false);
            }
            timers.release();
        });
        timers.add(1);
        OwedTime.of(channel).setReading(true);
        hasTaken();
        lookAgain();
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
            then(socket.shutdownOutput(), this::discard);
        } else {
            channel.close();
        }
    }

    private void then(ChannelFuture step, Runnable next) {
        step.addListener(done -> {
            if (done.isSuccess()) {
                orClose(next);
            } else {
                channel.close();
            }
        });
    }

    /** Nobody else would go on with what a step has begun: neither a timer nor a future calls it again. */
    private void orClose(Runnable step) {
        try {
            step.run();
        } catch (Throwable t) {
            SocketQueue.closeNow(channel);
            ThreadTools.report(t);
        }
    }

    private void discard() {
        isWritten = true;
        if (hasArrived()) {
            after(DISCARD_NANOS, () -> SocketQueue.closeNow(channel));
        } else {
            looksLeft = FIRST_LOOKS;
            lookAgain();
        }
    }

    private void lookAgain() {
        after(LOOK_NANOS, this::look);
    }

    private void after(long nanos, Runnable next) {
        if (timer != null) {
            timer.cancel(false);
        }
        if (channel.isOpen()) {
            timer = channel.eventLoop().schedule(() -> orClose(next), nanos, TimeUnit.NANOSECONDS);
        }
    }

    private void look() {
        if (isWritten && hasArrived()) {
            discard();
            return;
        }
        boolean isMoving = isWritten ? isOnItsWay() : hasTaken();
        looksLeft = isMoving ? MORE_LOOKS : looksLeft - 1;
        if (looksLeft == 0 || nanoTime() - beganNanos >= allowedNanos()) {
            SocketQueue.closeNow(channel);
        } else {
            lookAgain();
        }
    }

    /** Nothing is written any more, so that whatever has changed in the queue has left. */
    private boolean hasTaken() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        long bytes = queue == null ? 0 : queue.totalPendingWriteBytes();
        long rest = queue != null && queue.current() instanceof ByteBuf first ? first.readableBytes() : 0;
        boolean isLess = bytes != queued || rest != restOfFirst;
        queued = bytes;
        restOfFirst = rest;
        return isLess;
    }

    /** Whether the peer's system has all, and the end behind it; yes where this system does not tell. */
    private boolean hasArrived() {
        EpollTcpInfo way = way();
        return way == null || way.state() != FIN_WAIT_1;
    }

    /** The system here sends, or the peer's has said to have more: one that does not read is sent questions alone. */
    private boolean isOnItsWay() {
        EpollTcpInfo way = way();
        if (way == null) {
            return false;
        }
        boolean isMoving = way.unacked() != onTheWay || TimeUnit.MILLISECONDS.toNanos(way.lastDataSent()) < LOOK_NANOS;
        onTheWay = way.unacked();
        return isMoving;
    }

    private @Nullable EpollTcpInfo way() {
        try {
            return channel instanceof EpollSocketChannel socket ? socket.tcpInfo() : null;
        } catch (ChannelException closed) {
            return null;
        }
    }

    private long allowedNanos() {
        LongSupplier allowed = channel.attr(ALLOWED).get();
        return Math.max(LEAVE_NANOS, allowed == null ? 0 : allowed.getAsLong());
    }

    private long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }
}
