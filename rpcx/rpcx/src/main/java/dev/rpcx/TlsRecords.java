package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandler;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.ssl.NotSslRecordException;
import io.netty.handler.ssl.SslCloseCompletionEvent;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Around the engine of a connection with TLS, on both sides. Before it: hands over whole records, one by one, and keeps
 * the begin of one whose end has not come. What is kept beyond a little is charged before that, as the begin of a frame
 * is, and has as long to become whole. Behind it, as {@link #opened}: sees whether a record has brought data, and makes
 * the end of the peer's stream of TLS the connection's end.
 *
 * <p>What brings no data may stay with the engine: the begin of a message that goes on over several records, or all that
 * comes behind a close_notify. So it is charged too, until data shows that the engine has kept nothing. All of a
 * handshake is such. Nor does it cost its sender anything: the engine copies what it has of a message for each record
 * that it gets of it, and makes new keys for a KeyUpdate of 27 bytes. So its records are counted, and too many of them
 * end the connection.
 *
 * <p>A length that no record has ends the connection when its header is there. On the event loop.
 */
final class TlsRecords extends ChannelInboundHandlerAdapter {
    /**
     * Most that a client may send without data in an hour once its handshake is done, in KeyUpdates: a record counts
     * for as many of them as it has room for, with one that the next record ends, and one of
     * {@link #JDK_KEY_UPDATE_BYTES} as one. An honest client needs one for each 2^24 records. But the JDK's engine
     * sends one for each record that comes while its own is not answered, once it has received 2^37 bytes
     * (JDK-8329548); so there is room for what a socket holds.
     */
    static final int MAX_SILENT_OF_CLIENT = 1024;

    /** The same for a server, which may send some tickets for later connections, with certificates in them. */
    static final int MAX_SILENT_OF_SERVER = 4096;

    /**
     * A handshake may have so many records, and one more for each {@link #HANDSHAKE_RECORD_BYTES} of it. Clients with
     * six certificates of RSA 4096 send 9 KiB in 5 records (OpenSSL 3.0, Go 1.26), or 23 of the smallest.
     */
    static final int MIN_HANDSHAKE_RECORDS = 64;

    /** Smallest record that a side may ask for. Source: RFC 6066, section 4. */
    static final int HANDSHAKE_RECORD_BYTES = 512;

    private static final int KEY_UPDATE_BYTES = 5;

    /**
     * A record of one KeyUpdate as the JDK's engine sends it, with 16 bytes of padding. What a record is padded with
     * cannot be seen here: whoever fills records of just this length with KeyUpdates may send four times as many.
     */
    static final int JDK_KEY_UPDATE_BYTES = 43;

    private static final long SILENT_NANOS = TimeUnit.HOURS.toNanos(1);
    private static final int HEADER_BYTES = 5;

    /** What a record has beside its content: header, type and tag. */
    private static final int SEALED_BYTES = HEADER_BYTES + 1 + 16;

    /** Source: RFC 8446, section 5.2. */
    private static final int MAX_LENGTH = (1 << 14) + 256;

    /** From change_cipher_spec to application_data. Source: RFC 8446, section 5.1. */
    private static final int MIN_TYPE = 20;

    private static final int MAX_TYPE = 23;

    /** Of all versions from SSL 3.0 to TLS 1.3. Source: the same. */
    private static final int MAJOR_VERSION = 3;

    private final Channel channel;
    private final OwedTime owed;

    /** What {@link #begin} may grow to, and what the engine may have kept. */
    private final Claim claim;

    private final Charge timers;
    private final long recordNanos;
    private final int maxSilent;
    private ByteBuf begin = Unpooled.EMPTY_BUFFER;
    private @Nullable ChannelHandlerContext context;

    /** Bytes of records since the last one that has brought data. */
    private long silentBytes;

    /** Of a handshake, all records; afterwards those without data since {@link #silentSinceNanos}, by their weight. */
    private int silentRecords;

    private long silentSinceNanos;
    private boolean isHandshaken;

    /** The record that the engine has been given last has brought data. */
    private boolean hasOpened;

    /** When the record of which a part is kept began, as {@link #owed} goes. */
    private long sinceNanos;

    /** A part of a record has come since those behind this were told. */
    private boolean hasPart;

    private @Nullable ScheduledFuture<?> timer;
    private boolean isOver;

    /**
     * @param recordNanos longest time for a record that is more than a little, while this side reads
     * @param maxSilent of the peer: {@link #MAX_SILENT_OF_CLIENT} or {@link #MAX_SILENT_OF_SERVER}
     */
    TlsRecords(Channel channel, Account account, long recordNanos, int maxSilent) {
        this.channel = channel;
        this.owed = OwedTime.of(channel);
        this.recordNanos = recordNanos;
        this.maxSilent = maxSilent;
        this.claim = new Claim(account, Resource.FRAME_BYTES, channel.eventLoop(), this::closeForRoom);
        this.timers = account.charge(Resource.TIMERS);
    }

    /** The handshake is done: from here on records are to bring data. */
    void handshaken() {
        isHandshaken = true;
        silentBytes = 0;
        silentRecords = 0;
        silentSinceNanos = nanoTime();
    }

    /** The part of this that stands behind the engine. */
    ChannelInboundHandler opened() {
        return new ChannelInboundHandlerAdapter() {
            @Override
            public void channelRead(ChannelHandlerContext ctx, Object message) {
                hasOpened = true;
                ctx.fireChannelRead(message);
            }

            @Override
            public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
                if (event instanceof SslCloseCompletionEvent end && end.isSuccess()) {
                    endOfStream(ctx);
                } else {
                    ctx.fireUserEventTriggered(event);
                }
            }
        };
    }

    /**
     * The peer has said close_notify, behind which nothing can come (RFC 8446, section 6.1): for those behind this the
     * connection ends as it does without TLS at the end of TCP's stream, which need not follow. They are told before it
     * is closed, since a peer that does not read keeps the engine's last word, and with it the close, for a while.
     */
    private static void endOfStream(ChannelHandlerContext ctx) {
        ctx.fireChannelInactive();
        ctx.close();
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) {
        context = ctx;
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        try {
            while (in.isReadable() && !isOver) {
                if (begin.isReadable()) {
                    complete(ctx, in);
                } else {
                    passOne(ctx, in);
                }
            }
        } finally {
            in.release();
        }
    }

    /** Passes the record with which this begins, or keeps all of it where that is not whole. */
    private void passOne(ChannelHandlerContext ctx, ByteBuf in) {
        int bytes = in.readableBytes();
        int length = bytes < HEADER_BYTES ? Integer.MAX_VALUE : length(in, in.readerIndex());
        if (length < 0) {
            notARecord(ctx);
        } else if (length <= bytes) {
            pass(ctx, in.readRetainedSlice(length));
        } else {
            keep(in, bytes);
        }
    }

    /** Takes as many bytes as the record that has begun still needs, and not one more. */
    private void complete(ChannelHandlerContext ctx, ByteBuf in) {
        if (begin.readableBytes() < HEADER_BYTES) {
            keep(in, Math.min(HEADER_BYTES - begin.readableBytes(), in.readableBytes()));
            if (begin.readableBytes() == HEADER_BYTES && length(begin, 0) < 0) {
                notARecord(ctx);
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

    /** The connection hears why it ends: most often the peer does not speak TLS, which its user has to learn. */
    private void notARecord(ChannelHandlerContext ctx) {
        ctx.fireExceptionCaught(new NotSslRecordException("not an SSL/TLS record"));
        close();
    }

    private void pass(ChannelHandlerContext ctx, ByteBuf record) {
        int bytes = record.readableBytes();
        if (!isHandshaken) {
            silentBytes += bytes;
            silentRecords++;
            if (silentRecords > MIN_HANDSHAKE_RECORDS + silentBytes / HANDSHAKE_RECORD_BYTES) {
                record.release();
                close();
            } else {
                ctx.fireChannelRead(record);
            }
            return;
        }
        hasOpened = false;
        ctx.fireChannelRead(record);
        if (hasOpened) {
            silentBytes = 0;
        } else {
            silent(bytes);
        }
    }

    private void silent(int bytes) {
        silentBytes += bytes;
        int weight = bytes == JDK_KEY_UPDATE_BYTES ? 1 : weight(bytes - SEALED_BYTES);
        silentRecords += weight;
        if (silentRecords > maxSilent) {
            long now = nanoTime();
            if (weight > maxSilent || now - silentSinceNanos < SILENT_NANOS) {
                close();
            } else {
                silentSinceNanos = now;
                silentRecords = weight;
            }
        }
    }

    /** KeyUpdates of which so many bytes of content may have a part. */
    private static int weight(int content) {
        return Math.max(1, (content + KEY_UPDATE_BYTES - 1) / KEY_UPDATE_BYTES);
    }

    /**
     * Without the look at the version the TLS engine would write all that has come into the text of an exception.
     *
     * @return the length of the record whose header is there, with the header; -1 if it is none
     */
    private static int length(ByteBuf in, int at) {
        int type = in.getUnsignedByte(at);
        if (in.getUnsignedByte(at + 1) != MAJOR_VERSION) {
            return -1;
        }
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
        hasPart = true;
        if (before == 0) {
            sinceNanos = owed.at(nanoTime());
        }
        if (kept > Uncharged.SMALL_BYTES) {
            if (before <= Uncharged.SMALL_BYTES) {
                claim.renew(nanoTime());
            }
            if (!charge(room)) {
                return;
            }
            watch(recordNanos);
        } else {
            room = Math.max(kept, Math.min(Uncharged.SMALL_BYTES, 2 * kept));
        }
        if (kept > begin.capacity()) {
            ByteBuf larger = Unpooled.buffer(Math.max(room, kept), HEADER_BYTES + MAX_LENGTH);
            begin = larger.writeBytes(begin);
        }
        begin.writeBytes(in, bytes);
    }

    /** @return false if there is no room, and the connection has ended */
    private boolean charge(int recordBytes) {
        long silent = silentBytes > Uncharged.SMALL_BYTES ? silentBytes : 0;
        if (claim.set(silent + recordBytes, nanoTime())) {
            return true;
        }
        closeForRoom();
        return false;
    }

    /** No fault of the peer, which those behind this are told before the end. */
    private void closeForRoom() {
        if (context != null) {
            context.fireUserEventTriggered(SocketQueue.NO_ROOM);
        }
        close();
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        if (!isOver) {
            boolean isCut = begin.readableBytes() > Uncharged.SMALL_BYTES;
            if (isCut || silentBytes > Uncharged.SMALL_BYTES) {
                charge(isCut ? length(begin, 0) : 0);
            } else {
                claim.release();
            }
            tellPart(ctx);
        }
        ctx.fireChannelReadComplete();
    }

    /**
     * Those behind this, which get whole records only, hear of a peer whose record is on its way. It has a record's
     * time for that: one that sends a byte now and then would be alive for ever.
     */
    private void tellPart(ChannelHandlerContext ctx) {
        boolean isTold = hasPart && begin.isReadable() && owed.left(sinceNanos + recordNanos, nanoTime()) > 0;
        hasPart = false;
        if (isTold) {
            ctx.fireUserEventTriggered(SocketQueue.PART);
        }
    }

    private long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }

    /** One timer serves all records; most find it set for an earlier time. */
    private void watch(long nanos) {
        if (timer == null) {
            timer = channel.eventLoop().schedule(this::look, nanos, TimeUnit.NANOSECONDS);
            timers.add(1);
        }
    }

    private void look() {
        timer = null;
        timers.release();
        if (begin.readableBytes() <= Uncharged.SMALL_BYTES) {
            return;
        }
        long left = owed.left(sinceNanos + recordNanos, nanoTime());
        if (left > 0) {
            watch(left);
        } else {
            close();
        }
    }

    /**
     * Closes without a word, as within a record nothing can be said. Not by way of the engine, which would wait for its
     * own last word to leave.
     */
    private void close() {
        over();
        if (context != null) {
            context.close();
        }
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
