package dev.rpcx.internal.io;

import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
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
 * Closes a connection by half-close, so that the bytes written last arrive. A socket that is closed with bytes unread,
 * or that gets bytes afterwards, is reset, and a reset throws away what the peer has not read yet. So this side first
 * sends the end of its stream (within TLS a close_notify before it), and then reads and throws away what still comes,
 * until the peer closes too or its time is over.
 *
 * <p>The bytes written last may be a large reply that the peer reads slowly. They may leave for as long as the peer
 * takes some of them now and then, and no longer than the owner of the channel allows: see {@link #allow}. They have
 * left once the peer's kernel has them, and not once the local kernel has them: on a slow network there may be seconds
 * between the two.
 */
public final class HalfClose {
    private static final AttributeKey<LongSupplier> ALLOWED = AttributeKey.valueOf(HalfClose.class, "allowed");

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * Number of looks, 2 s in all, in which a peer has to take some of the bytes written last: a peer that takes
     * nothing must not hold the connection. Source: nginx, lingering_time, shortened. Looks are counted, and not time,
     * since a loop that was kept from a look was kept from its sockets too.
     */
    private static final int FIRST_LOOKS = 4;

    /**
     * Number of looks, 10 s in all, in which a peer that has taken some bytes has to take more. A kernel takes up to 64
     * KiB at once of what leaves, and a peer that reads 16 KiB a second needs 4 s for them. Source: the longest silence
     * within a frame of the classic wire.
     */
    private static final int MORE_LOOKS = 20;

    /** Time that the peer has even if the owner of the channel allows less. */
    private static final long LEAVE_NANOS = FIRST_LOOKS * LOOK_NANOS;

    /**
     * Longest time for which this side still reads and throws away what comes, once the peer's kernel has the end of
     * the stream. Source: nginx, lingering_timeout, shortened.
     */
    private static final long DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * State of a socket whose end of the stream the peer's kernel has not acknowledged. Source: Linux, tcp_states.h.
     */
    private static final int FIN_WAIT_1 = 4;

    private final Channel channel;
    private final Charge timers;
    private final long beganNanos;
    private @Nullable Future<?> timer;

    /**
     * Bytes that the last look saw in the queue. {@code restOfFirst} is what it saw of the first message there, which
     * leaves piece by piece.
     */
    private long queued;

    private long restOfFirst;

    /** Number of consecutive looks that may still find no progress. */
    private int looksLeft = FIRST_LOOKS;

    /** True once the local kernel has the end of the stream, and the queue is empty. */
    private boolean isWritten;

    /** Number of TCP segments that were not acknowledged by the peer's kernel at the last look. */
    private long onTheWay;

    private HalfClose(Channel channel, Account account) {
        this.channel = channel;
        this.timers = account.charge(Resource.TIMERS);
        this.beganNanos = nanoTime();
    }

    /**
     * Sets how long the bytes written last may take to leave while the peer takes some of them; without this it is 2 s.
     * On any thread.
     *
     * @param nanos supplies the time from the beginning of the half-close; it is asked anew twice a second, on the
     *     event loop
     */
    public static void allow(Channel channel, LongSupplier nanos) {
        channel.attr(ALLOWED).set(nanos);
    }

    /**
     * Begins the half-close of a channel, whose handler from here on throws away what it reads. On the event loop, once
     * for a channel. If this throws, the channel is closed, since nobody else would close it.
     */
    public static void of(Channel channel, Account account) {
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
        // set first: what follows may fail, and then the channel is closed
        channel.closeFuture().addListener(over -> {
            if (timer != null) {
                timer.cancel(false);
            }
            timers.release();
        });
        timers.add(1);
        ReadingClock.of(channel).setReading(true);
        hasTaken();
        lookAgain();
        // the end of the stream waits for everything that was written: it would overtake what the socket has not taken
        // yet
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

    /**
     * Runs a step, and closes the channel if the step fails: neither a timer nor a future calls it again, so nobody
     * else would go on.
     */
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

    /**
     * Whether the peer has taken something since the last look. Nothing is written any more, so whatever has changed in
     * the queue has left.
     */
    private boolean hasTaken() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        long bytes = queue == null ? 0 : queue.totalPendingWriteBytes();
        long rest = queue != null && queue.current() instanceof ByteBuf first ? first.readableBytes() : 0;
        boolean isLess = bytes != queued || rest != restOfFirst;
        queued = bytes;
        restOfFirst = rest;
        return isLess;
    }

    /**
     * Whether the peer's kernel has all bytes, and the end of the stream behind them; true if the local kernel does not
     * say.
     */
    private boolean hasArrived() {
        EpollTcpInfo way = way();
        return way == null || way.state() != FIN_WAIT_1;
    }

    /**
     * Whether bytes are on the move: the local kernel has sent some since the last look, or the peer's kernel has
     * acknowledged more. A peer that does not read is sent window probes alone.
     */
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
