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
 * Closes a connection so that the peer receives the last bytes that were written. If a socket is closed while bytes
 * from the peer are unread or still arrive, TCP resets the connection, and the peer can lose the last bytes. So this
 * class sends the end of the TCP stream (with TLS, a close_notify before that), and the channel's handler discards what
 * arrives until the peer closes or a time limit is reached.
 *
 * <p>A peer that reads slowly gets more time as long as bytes are moving, up to the limit that {@link #allow} sets.
 */
public final class HalfClose {
    private static final AttributeKey<LongSupplier> ALLOWED = AttributeKey.valueOf(HalfClose.class, "allowed");

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * Number of checks after which the connection is closed if none of them has found that the peer takes bytes. There
     * is a check every 500 ms, so four checks take 2 s. The count begins anew when the local kernel has taken all bytes
     * and the end of the stream. Checks are counted here, and not the time, because an event loop that is held up can
     * neither check nor send bytes. Source: nginx, lingering_time, shortened.
     */
    private static final int FIRST_LOOKS = 4;

    /**
     * Number of checks, one every 500 ms, after which a peer that has taken some bytes, and then takes no more, loses
     * the connection: 10 s in all. A slow peer can seem to take nothing for some seconds: bytes move in steps of up to
     * 64 KiB, and a peer that reads 16 KiB a second needs 4 s for each such step. The classic wire also allows at most
     * 10 s of silence within a frame.
     */
    private static final int MORE_LOOKS = 20;

    /**
     * Time that is always allowed for sending the last bytes, in nanoseconds: 2 s. If {@link #allow} sets a longer
     * time, that time is allowed instead.
     */
    private static final long MIN_ALLOWED_NANOS = FIRST_LOOKS * LOOK_NANOS;

    /**
     * Longest time for which bytes are read and discarded after the peer's kernel has acknowledged the end of the
     * stream: 1 s. Source: nginx, lingering_timeout, shortened.
     */
    private static final long MAX_DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Linux's number of the TCP state in which the peer's kernel has not acknowledged the end of the stream. Source:
     * Linux, tcp_states.h.
     */
    private static final int FIN_WAIT_1 = 4;

    private final Channel channel;
    private final Charge timers;
    private final long beganNanos;
    private @Nullable Future<?> timer;

    /** Number of bytes that waited in the channel's queue to be sent, at the last check. */
    private long queued;

    /** Number of unsent bytes of the first message in the channel's queue, at the last check. */
    private long restOfFirst;

    /** Number of further checks after which the connection is closed, if none of these checks finds progress. */
    private int looksLeft = FIRST_LOOKS;

    /**
     * True if the local kernel has taken everything that this side sends: all bytes from the channel's queue, and then
     * the end of the stream.
     */
    private boolean isWritten;

    /** Number of TCP segments that had been sent but not acknowledged by the peer's kernel, at the last check. */
    private long onTheWay;

    private HalfClose(Channel channel, Account account) {
        this.channel = channel;
        this.timers = account.charge(Resource.TIMERS);
        this.beganNanos = nanoTime();
    }

    /**
     * Sets the longest time for sending the last bytes of a channel. The default and the minimum are 2 s. Thread-safe.
     *
     * @param nanos supplies the longest time in nanoseconds, counted from the beginning of the half-close; called every
     *     500 ms on the event loop
     */
    public static void allow(Channel channel, LongSupplier nanos) {
        channel.attr(ALLOWED).set(nanos);
    }

    /**
     * Begins the half-close of a channel. From this call on, the channel's handler has to discard what is read. Called
     * on the event loop, once for each channel. If this method throws, the channel has been closed.
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
        // this listener is added first: if a later line fails, the channel is closed, and the listener releases the
        // charge for the timer
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

    /**
     * Runs one step of the half-close. If the step throws, the channel is closed, since nothing would run the step
     * again.
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
            after(MAX_DISCARD_NANOS, () -> SocketQueue.closeNow(channel));
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
     * Returns whether the channel's queue has changed since the last check. Usually a change means that bytes have been
     * sent. Only two things are still added to the queue, and change it too: an empty message when the half-close
     * begins, and the close_notify of TLS.
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
     * Returns whether the peer's kernel has acknowledged all bytes and the end of the TCP stream. Also returns true if
     * the TCP state is unknown, for example without epoll.
     */
    private boolean hasArrived() {
        EpollTcpInfo way = way();
        return way == null || way.state() != FIN_WAIT_1;
    }

    /**
     * Returns whether the local kernel has sent bytes, or the peer's kernel has acknowledged bytes, since the last
     * check. Window probes, which TCP sends to a peer that does not read, do not count.
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
        return Math.max(MIN_ALLOWED_NANOS, allowed == null ? 0 : allowed.getAsLong());
    }

    private long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }
}
