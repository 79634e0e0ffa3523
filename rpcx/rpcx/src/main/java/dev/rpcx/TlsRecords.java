package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * First on a server's connection with TLS: hands whole records to the handler behind it, and keeps the begin of one
 * whose end has not come. What is kept beyond a little is charged before that, as the begin of a frame is, and has as
 * long to become whole. A handshake may go on over several records, which the handler behind has to keep; so until it
 * is done all that comes is charged in the same way.
 *
 * <p>A length that no record has ends the connection when its header is there. On the event loop.
 */
final class TlsRecords extends ChannelInboundHandlerAdapter {
    private static final int HEADER_BYTES = 5;

    /** Source: RFC 8446, section 5.2. */
    private static final int MAX_LENGTH = (1 << 14) + 256;

    /** From change_cipher_spec to application_data. Source: RFC 8446, section 5.1. */
    private static final int MIN_TYPE = 20;

    private static final int MAX_TYPE = 23;

    private static final int FIRST_BYTES = 256;

    private final Channel channel;

    /** What {@link #begin} may grow to, and what has come of a handshake. */
    private final Claim claim;

    private final Charge timers;
    private final long recordNanos;
    private ByteBuf begin = Unpooled.EMPTY_BUFFER;
    private long handshakeBytes;
    private boolean isHandshaken;

    /** When what is kept of the record became more than a little. */
    private long sinceNanos;

    private @Nullable ScheduledFuture<?> timer;
    private boolean isOver;

    /** @param recordNanos longest time for a record that is more than a little */
    TlsRecords(Channel channel, Account account, long recordNanos) {
        this.channel = channel;
        this.recordNanos = recordNanos;
        this.claim = new Claim(account, Resource.FRAME_BYTES, channel.eventLoop(), this::close);
        this.timers = account.charge(Resource.TIMERS);
    }

    /** The handshake is done: what comes from here on is read and given back at once. */
    void handshaken() {
        isHandshaken = true;
        handshakeBytes = 0;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        try {
            while (in.isReadable() && !isOver) {
                if (begin.isReadable()) {
                    complete(ctx, in);
                } else {
                    passWhole(ctx, in);
                }
            }
        } finally {
            in.release();
        }
    }

    /** Passes the whole records at the begin of what has come, and keeps the rest. */
    private void passWhole(ChannelHandlerContext ctx, ByteBuf in) {
        int bytes = in.readableBytes();
        int whole = 0;
        while (bytes - whole >= HEADER_BYTES) {
            int length = length(in, in.readerIndex() + whole);
            if (length < 0) {
                close();
                return;
            }
            if (length > bytes - whole) {
                break;
            }
            whole += length;
        }
        if (whole > 0) {
            pass(ctx, in.readRetainedSlice(whole));
        }
        if (in.isReadable() && !isOver) {
            keep(in, in.readableBytes());
        }
    }

    /** Takes as many bytes as the record that has begun still needs, and not one more. */
    private void complete(ChannelHandlerContext ctx, ByteBuf in) {
        if (begin.readableBytes() < HEADER_BYTES) {
            keep(in, Math.min(HEADER_BYTES - begin.readableBytes(), in.readableBytes()));
            if (begin.readableBytes() == HEADER_BYTES && length(begin, 0) < 0) {
                close();
            }
            return;
        }
        int wanted = length(begin, 0) - begin.readableBytes();
        keep(in, Math.min(wanted, in.readableBytes()));
        if (!isOver && begin.readableBytes() == length(begin, 0)) {
            ByteBuf record = begin;
            begin = Unpooled.EMPTY_BUFFER;
            pass(ctx, record);
        }
    }

    private void pass(ChannelHandlerContext ctx, ByteBuf records) {
        if (!isHandshaken) {
            handshakeBytes += records.readableBytes();
        }
        ctx.fireChannelRead(records);
    }

    /** @return the length of the record whose header is there, with the header; -1 if it is none */
    private static int length(ByteBuf in, int at) {
        int type = in.getUnsignedByte(at);
        int length = in.getUnsignedShort(at + HEADER_BYTES - 2);
        return type < MIN_TYPE || type > MAX_TYPE || length > MAX_LENGTH ? -1 : HEADER_BYTES + length;
    }

    private void keep(ByteBuf in, int bytes) {
        int before = begin.readableBytes();
        int kept = before + bytes;
        int room = before >= HEADER_BYTES ? length(begin, 0) : 0;
        if (before == 0 && bytes >= HEADER_BYTES) {
            room = length(in, in.readerIndex());
        }
        if (kept > Outbound.SMALL_BYTES) {
            if (before <= Outbound.SMALL_BYTES) {
                sinceNanos = nanoTime();
                claim.renew(sinceNanos);
            }
            if (!charge(room)) {
                return;
            }
            watch(recordNanos);
        } else {
            room = Math.max(kept, Math.min(FIRST_BYTES, 2 * kept));
        }
        if (kept > begin.capacity()) {
            ByteBuf larger = Unpooled.buffer(Math.max(room, kept), HEADER_BYTES + MAX_LENGTH);
            begin = larger.writeBytes(begin);
        }
        begin.writeBytes(in, bytes);
    }

    /** @return false if there is no room, and the connection has ended */
    private boolean charge(int recordBytes) {
        long shaken = handshakeBytes > Outbound.SMALL_BYTES ? handshakeBytes : 0;
        if (claim.set(shaken + recordBytes, nanoTime())) {
            return true;
        }
        close();
        return false;
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        if (!isOver) {
            boolean isCut = begin.readableBytes() > Outbound.SMALL_BYTES;
            if (isCut || handshakeBytes > Outbound.SMALL_BYTES) {
                charge(isCut ? length(begin, 0) : 0);
            } else {
                claim.release();
            }
        }
        ctx.fireChannelReadComplete();
    }

    private long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }

    /** One timer serves all records; most find it set for an earlier time. */
    private void watch(long nanos) {
        if (timer == null) {
            timers.add(1);
            timer = channel.eventLoop().schedule(this::look, nanos, TimeUnit.NANOSECONDS);
        }
    }

    private void look() {
        timer = null;
        timers.release();
        if (begin.readableBytes() <= Outbound.SMALL_BYTES) {
            return;
        }
        long left = sinceNanos + recordNanos - nanoTime();
        if (left > 0) {
            watch(left);
        } else {
            close();
        }
    }

    /** Closes without a word: within a record nothing can be said. */
    private void close() {
        over();
        channel.close();
    }

    private void over() {
        isOver = true;
        begin = Unpooled.EMPTY_BUFFER;
        claim.close();
        if (timer != null) {
            timer.cancel(false);
            timer = null;
            timers.release();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        over();
        ctx.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext ctx) {
        over();
    }
}
