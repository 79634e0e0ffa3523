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
 * Closes a connection by half-close, so that the bytes written last arrive. A socket is reset if it is closed with
 * bytes unread, or if bytes come after it was closed, and a reset throws away what the peer has not read yet. So this
 * side first sends the end of its stream; with TLS it sends a close_notify before that. Then it reads and throws away
 * what still comes, until the peer closes too or its time is over.
 *
 * <p>The bytes written last may be a large reply that the peer reads slowly. They are sent for as long as the peer
 * takes some of them now and then, but no longer than the owner of the channel allows: see {@link #allow}. They count
 * as sent once the peer's kernel has them, and not once the local kernel has them: on a slow network there may be
 * seconds between the two.
 */
public final class HalfClose {
    private static final AttributeKey<LongSupplier> ALLOWED = AttributeKey.valueOf(HalfClose.class, "allowed");

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * Number of checks, one every 500 ms and so 2 s in all, within which a peer has to take some of the bytes written
     * last. A peer that takes nothing must not hold the connection. Source: nginx, lingering_time, shortened. Checks
     * are counted instead of time: an event loop that was held up and so missed a check could not serve its sockets
     * either.
     */
    private static final int FIRST_LOOKS = 4;

    /**
     * Number of checks, 10 s in all, within which a peer that has taken some bytes has to take more. A kernel takes up
     * to 64 KiB of these bytes in one step, and a peer that reads 16 KiB a second needs 4 s for them. Source: the
     * longest silence that the classic wire allows within a frame.
     */
    private static final int MORE_LOOKS = 20;

    /** Time that the peer has to take the bytes written last, even if the owner of the channel allows less: 2 s. */
    private static final long LEAVE_NANOS = FIRST_LOOKS * LOOK_NANOS;

    /**
     * Longest time for which this side still reads and throws away what comes, after the peer's kernel has got the end
     * of the stream. Source: nginx, lingering_timeout, shortened.
     */
    private static final long DISCARD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * TCP state of a socket that has sent the end of the stream while the peer's kernel has not acknowledged it.
     * Source: Linux, tcp_states.h.
     */
    private static final int FIN_WAIT_1 = 4;

    private final Channel channel;
    private final Charge timers;
    private final long beganNanos;
    private @Nullable Future<?> timer;

    /** Number of bytes in the queue at the last check. */
    private long queued;

    /** Number of bytes of the first message in the queue at the last check. A message may be sent piece by piece. */
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
     * Sets how long it may take to send the bytes written last while the peer takes some of them. At least 2 s are
     * always allowed. If this method is not called, only these 2 s are allowed. Thread-safe: any thread may call this.
     *
     * @param nanos supplies this time in nanoseconds, counted from the beginning of the half-close. It is called twice
     *     a second, on the event loop
     */
    public static void allow(Channel channel, LongSupplier nanos) {
        channel.attr(ALLOWED).set(nanos);
    }

    /**
     * Begins the half-close of a channel. From now on the channel's handler has to throw away what it reads. Event loop
     * only, and once for each channel. If this throws, it has closed the channel, since nobody else would close it.
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
        // the listener is added first: what follows may fail, and then the channel is closed, which calls the listener
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
        // the end of the stream waits until the socket has taken everything that was written: otherwise it would
        // overtake what has not been sent yet
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
     * Runs a step, and closes the channel if the step fails. Neither a timer nor a future calls the step a second time,
     * so nothing else would go on with the half-close.
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
     * Says whether the peer has taken something since the last check. Nothing is written any more, so whatever has
     * changed in the queue has been sent.
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
     * Says whether the peer's kernel has all bytes, and the end of the stream behind them. Returns true if the local
     * kernel cannot be asked.
     */
    private boolean hasArrived() {
        EpollTcpInfo way = way();
        return way == null || way.state() != FIN_WAIT_1;
    }

    /**
     * Says whether bytes are moving: since the last check, the local kernel has sent some, or the peer's kernel has
     * acknowledged some. If the peer does not read, the local kernel sends it only window probes, which do not count.
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
