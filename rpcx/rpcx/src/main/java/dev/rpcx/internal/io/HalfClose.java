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
 * Closes a connection by half-close, so that the peer gets the bytes written last. If a socket is closed with bytes
 * unread, or if bytes arrive after the close, the connection is reset and the peer loses what it has not read yet. So
 * this side first sends the end of its stream (with TLS, close_notify before that). Then it reads and discards what
 * arrives, until the peer closes too or its time is over.
 *
 * <p>The bytes written last may be a large reply that the peer reads slowly. Sending goes on as long as the peer takes
 * some bytes now and then, for at most the time that {@link #allow} sets. Bytes count as sent once the peer's kernel
 * has acknowledged them.
 */
public final class HalfClose {
    private static final AttributeKey<LongSupplier> ALLOWED = AttributeKey.valueOf(HalfClose.class, "allowed");

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * Number of checks, one every 500 ms, within which a peer has to take some of the bytes written last: 2 s. Checks
     * are counted, not time, since an event loop that is held up cannot serve its sockets either. Source: nginx,
     * lingering_time, shortened.
     */
    private static final int FIRST_LOOKS = 4;

    /**
     * Number of checks, 10 s in all, within which a peer that has taken some bytes has to take more. A kernel takes up
     * to 64 KiB of these bytes in one step, and a peer that reads 16 KiB a second needs 4 s for them. Source: the
     * longest silence that the classic wire allows within a frame.
     */
    private static final int MORE_LOOKS = 20;

    /** Time that the peer always has to take the bytes written last, whatever {@link #allow} says: 2 s. */
    private static final long LEAVE_NANOS = FIRST_LOOKS * LOOK_NANOS;

    /**
     * Longest time for which this side reads and discards, after the peer's kernel has got the end of the stream: 1 s.
     * Source: nginx, lingering_timeout, shortened.
     */
    private static final long DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * TCP state of a socket whose end of stream the peer's kernel has not acknowledged. Source: Linux, tcp_states.h.
     */
    private static final int FIN_WAIT_1 = 4;

    private final Channel channel;
    private final Charge timers;
    private final long beganNanos;
    private @Nullable Future<?> timer;

    /** Number of bytes in the queue at the last check. */
    private long queued;

    /** Number of unsent bytes of the first message in the queue at the last check. */
    private long restOfFirst;

    /** Number of further checks in a row that may find no progress. */
    private int looksLeft = FIRST_LOOKS;

    /** True once the local kernel has the end of the stream, and the queue is empty. */
    private boolean isWritten;

    /** Number of TCP segments that the peer's kernel had not acknowledged at the last check. */
    private long onTheWay;

    private HalfClose(Channel channel, Account account) {
        this.channel = channel;
        this.timers = account.charge(Resource.TIMERS);
        this.beganNanos = nanoTime();
    }

    /**
     * Sets the longest time to send the bytes written last. Default and minimum: 2 s. Thread-safe.
     *
     * @param nanos supplies this time in nanoseconds, counted from the beginning of the half-close. Called twice a
     *     second, on the event loop
     */
    public static void allow(Channel channel, LongSupplier nanos) {
        channel.attr(ALLOWED).set(nanos);
    }

    /**
     * Begins the half-close of a channel. From now on, the channel's handler has to discard what it reads. Event loop
     * only, once for each channel. If this method throws, it has closed the channel.
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
        // added first: if a later line fails, the channel is closed, and the listener cancels the timer and releases
        // its charge
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
        // the end of the stream is sent only after everything that was written before
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

    /** Runs a step, and closes the channel if the step fails, since nothing would run the step again. */
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
     * Whether the peer has taken something since the last check. Nothing is written any more, so any change of the
     * queue means that bytes have been sent.
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
     * Whether the peer's kernel has got all bytes and the end of the stream. True if the local kernel cannot be asked.
     */
    private boolean hasArrived() {
        EpollTcpInfo way = way();
        return way == null || way.state() != FIN_WAIT_1;
    }

    /**
     * Whether bytes are moving: since the last check, the local kernel has sent some, or the peer's kernel has
     * acknowledged some. The window probes to a peer that does not read do not count.
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
