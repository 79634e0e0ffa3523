package dev.rpcx.internal.io;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
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
 * Limits what the TLS records of a peer cost this side, which is a client or a server. This handler comes before the
 * TLS engine in the pipeline, and passes only complete records to the engine. A second handler, {@link #opened}, comes
 * behind the engine. The second handler sees which records contain data, and closes the connection when the peer ends
 * its TLS stream. Both handlers are used only on the event loop.
 *
 * <p>The beginning of a record is kept until the rest arrives. If more than {@code UnchargedAllowance.MAX_SMALL_BYTES}
 * of a record have arrived, the record is charged, and the connection is closed if the rest does not arrive in time.
 *
 * <p>Records without data that together have more than {@code UnchargedAllowance.MAX_SMALL_BYTES} are charged too,
 * until a record with data arrives, because the engine can keep their content. Such content is the beginning of a
 * message that is split into several records, or anything behind a close_notify. All records of a handshake are charged
 * like records without data.
 *
 * <p>Too many records without data end the connection, because they cost the receiver much more than the sender. Each
 * time that a further record of an incomplete message arrives, the engine copies the message. For each KeyUpdate, the
 * engine creates new keys, although the record of a KeyUpdate needs only 27 bytes.
 *
 * <p>A header with an impossible type, version or length ends the connection immediately.
 */
public final class TlsRecords extends ChannelInboundHandlerAdapter {
    /**
     * Largest total weight of the records without data that a client may send within an hour. Records of the handshake
     * are not included. The weight of a record is the largest number of KeyUpdates that can begin in the record. A
     * record of {@link #JDK_KEY_UPDATE_BYTES} bytes has the weight 1.
     *
     * <p>An honest client needs one KeyUpdate for each 2^24 records. However, the JDK's engine of a client that has
     * received 2^37 bytes sends one KeyUpdate for each further record that it receives, until the server has answered
     * the first KeyUpdate (JDK-8329548). Before the engine gets this answer, it receives all the records that are
     * already in the buffers of the socket. Therefore the limit allows one KeyUpdate for each record that these buffers
     * can hold.
     */
    public static final int MAX_SILENT_OF_CLIENT = 1024;

    /**
     * Largest total weight of the records without data that a server may send within an hour. The weight of a record is
     * the largest number of KeyUpdates that can begin in the record, see {@link #MAX_SILENT_OF_CLIENT}. The limit for a
     * server is larger than for a client, because a server can send session tickets that contain certificates.
     */
    public static final int MAX_SILENT_OF_SERVER = 4096;

    /**
     * Number of TLS records that a peer may send in every handshake. One more record is allowed for each
     * {@link #MIN_RECORD_LIMIT_BYTES} bytes that the peer sends in the handshake. For example, a client with six RSA
     * 4096 certificates sends 9 KiB, in 5 records with OpenSSL 3.0 or Go 1.26, and in 23 records of the smallest size.
     */
    public static final int MIN_HANDSHAKE_RECORDS = 64;

    /**
     * Smallest limit, in bytes, that one side may set for the size of the other side's records. Source: RFC 6066,
     * section 4.
     */
    public static final int MIN_RECORD_LIMIT_BYTES = 512;

    private static final int KEY_UPDATE_BYTES = 5;

    /**
     * Size, in bytes, of the record in which the JDK's engine sends one KeyUpdate, with 16 bytes of padding. A record
     * of this size counts as one KeyUpdate, although a peer that sends no padding can put four KeyUpdates into the
     * record.
     */
    public static final int JDK_KEY_UPDATE_BYTES = 43;

    private static final long SILENT_NANOS = TimeUnit.HOURS.toNanos(1);
    private static final int HEADER_BYTES = 5;

    /**
     * Number of bytes of a record in addition to its content: the header, the content type and the authentication tag.
     */
    private static final int SEALED_BYTES = HEADER_BYTES + 1 + 16;

    /**
     * Largest number of bytes that the header of a record may announce for the rest of the record. Source: RFC 8446,
     * section 5.2.
     */
    private static final int MAX_LENGTH = (1 << 14) + 256;

    /** Smallest valid content type of a record: change_cipher_spec. Source: RFC 8446, section 5.1. */
    private static final int MIN_TYPE = 20;

    /** Largest valid content type of a record: application_data. Source: RFC 8446, section 5.1. */
    private static final int MAX_TYPE = 23;

    /** Major version in the headers of all records from SSL 3.0 to TLS 1.3. Source: RFC 8446, section 5.1. */
    private static final int MAJOR_VERSION = 3;

    /**
     * The alert unexpected_message as a TLS record, which is the answer to bytes that are no TLS record. A peer without
     * TLS can tell its user by this record that this side uses TLS. Source: RFC 8446, sections 5.1 and 6.2.
     */
    private static final byte[] UNEXPECTED_MESSAGE = {21, MAJOR_VERSION, 3, 0, 2, 2, 10};

    private final Channel channel;
    private final ReadingClock readingClock;

    /**
     * Charges the connection for the full size of the incomplete record, and for records without application data. The
     * TLS engine can keep the content of records without application data, for example the beginning of a split
     * message.
     */
    private final Claim claim;

    private final Charge timers;
    private final long recordNanos;
    private final int maxSilent;
    private ByteBuf partialRecord = Unpooled.EMPTY_BUFFER;
    private @Nullable ChannelHandlerContext context;

    /**
     * Number of bytes of all records that have arrived since the last record with data. Before the first record with
     * data, the count begins at the end of the handshake. During the handshake, all its records are counted.
     */
    private long silentBytes;

    /**
     * Total weight of the records without data that have arrived since {@link #silentSinceNanos}. The weights are
     * explained at {@link #MAX_SILENT_OF_CLIENT}. During the handshake, this field is the number of the handshake's
     * records instead.
     */
    private int silentRecords;

    private long silentSinceNanos;
    private boolean isHandshaken;

    /** Whether the record that was last passed to the TLS engine contained data. */
    private boolean hasOpened;

    /**
     * Time at which the first bytes of {@link #partialRecord} arrived. The time is given by {@link #readingClock},
     * which stands still while this side does not read.
     */
    private long sinceNanos;

    /** Whether a part of a record has arrived since the last call of {@link #reportPart}. */
    private boolean hasPart;

    private @Nullable ScheduledFuture<?> timer;
    private boolean isOver;

    /**
     * Creates the handler that comes before the TLS engine in the pipeline.
     *
     * @param recordNanos longest time, in nanoseconds, from the first byte of a record to the last byte. Time in which
     *     this side does not read is not counted. A record of which at most {@code UnchargedAllowance.MAX_SMALL_BYTES}
     *     have arrived has no limit. For a record of which more have arrived, the limit is checked within the next
     *     {@code recordNanos}, so the record can take longer than the limit
     * @param maxSilent limit for the records without data: {@link #MAX_SILENT_OF_CLIENT} or
     *     {@link #MAX_SILENT_OF_SERVER}
     */
    public TlsRecords(Channel channel, Account account, long recordNanos, int maxSilent) {
        this.channel = channel;
        this.readingClock = ReadingClock.of(channel);
        this.recordNanos = recordNanos;
        this.maxSilent = maxSilent;
        this.claim = new Claim(account, Resource.FRAME_BYTES, channel.eventLoop(), this::closeForRoom);
        this.timers = account.charge(Resource.TIMERS);
    }

    /**
     * Called when the TLS handshake is done or has failed. From then on, the limit for records without data applies
     * instead of the limit for the records of a handshake. The records of the handshake do not count towards the new
     * limit.
     */
    void handshaken() {
        isHandshaken = true;
        silentBytes = 0;
        silentRecords = 0;
        silentSinceNanos = nanoTime();
    }

    /** Creates the handler that comes behind the TLS engine in the pipeline. */
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
     * Closes the connection after the peer has ended its TLS stream with close_notify (RFC 8446, section 6.1). The next
     * handlers are first notified as if the TCP stream had ended, because the peer need not end the TCP stream. The
     * handlers are notified before the close, because a peer that does not read can delay the close.
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
                if (partialRecord.isReadable()) {
                    complete(ctx, in);
                } else {
                    passOne(ctx, in);
                }
            }
        } finally {
            in.release();
        }
    }

    /**
     * Passes the record at the beginning of {@code in} to the TLS engine. If this record is incomplete, keeps all bytes
     * of {@code in} until the rest of the record arrives.
     */
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

    /**
     * Adds bytes from {@code in} to the incomplete record. If the record is complete afterwards, passes the record to
     * the TLS engine.
     */
    private void complete(ChannelHandlerContext ctx, ByteBuf in) {
        if (partialRecord.readableBytes() < HEADER_BYTES) {
            keep(in, Math.min(HEADER_BYTES - partialRecord.readableBytes(), in.readableBytes()));
            if (partialRecord.readableBytes() == HEADER_BYTES && length(partialRecord, 0) < 0) {
                notARecord(ctx);
            }
            return;
        }
        int wanted = length(partialRecord, 0) - partialRecord.readableBytes();
        keep(in, Math.min(wanted, in.readableBytes()));
        if (!isOver && partialRecord.readableBytes() == length(partialRecord, 0)) {
            ByteBuf record = partialRecord;
            partialRecord = Unpooled.EMPTY_BUFFER;
            pass(ctx, record);
        }
    }

    /**
     * Closes the connection because the peer has sent bytes that are not a TLS record. If these are the peer's first
     * bytes, the peer gets an alert, so that it can tell its user that this side uses TLS. The next handlers get an
     * exception that names the usual cause to the user: the peer does not use TLS.
     */
    private void notARecord(ChannelHandlerContext ctx) {
        if (!isHandshaken && silentRecords == 0) {
            // The alert is written before the next handlers get the exception, since they close the channel.
            ctx.writeAndFlush(Unpooled.wrappedBuffer(UNEXPECTED_MESSAGE));
        }
        ctx.fireExceptionCaught(new NotSslRecordException(
                "the peer does not use TLS, and this side does (expected: TLS on both sides, or on neither)"));
        close();
    }

    private void pass(ChannelHandlerContext ctx, ByteBuf record) {
        int bytes = record.readableBytes();
        if (!isHandshaken) {
            silentBytes += bytes;
            silentRecords++;
            if (silentRecords > MIN_HANDSHAKE_RECORDS + silentBytes / MIN_RECORD_LIMIT_BYTES) {
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

    /**
     * Returns the largest number of KeyUpdates that can begin in a record with this many bytes of content. The result
     * is at least 1. For example, five KeyUpdates can begin in 21 bytes.
     */
    private static int weight(int content) {
        return Math.max(1, (content + KEY_UPDATE_BYTES - 1) / KEY_UPDATE_BYTES);
    }

    /**
     * Returns the length in bytes, including the header, of the record that begins at index {@code at}. Returns -1 if
     * no record can begin with these bytes. The version is checked here, because the TLS engine would put all received
     * bytes into the text of its exception.
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
        int before = partialRecord.readableBytes();
        int kept = before + bytes;
        int room = before >= HEADER_BYTES ? length(partialRecord, 0) : 0;
        if (before == 0 && bytes >= HEADER_BYTES) {
            room = length(in, in.readerIndex());
        }
        hasPart = true;
        if (before == 0) {
            sinceNanos = readingClock.at(nanoTime());
        }
        if (kept > UnchargedAllowance.MAX_SMALL_BYTES) {
            if (before <= UnchargedAllowance.MAX_SMALL_BYTES) {
                claim.renew(nanoTime());
            }
            if (!charge(room)) {
                return;
            }
            startTimer(recordNanos);
        } else {
            room = Math.max(kept, Math.min(UnchargedAllowance.MAX_SMALL_BYTES, 2 * kept));
        }
        if (kept > partialRecord.capacity()) {
            ByteBuf larger = Unpooled.buffer(Math.max(room, kept), HEADER_BYTES + MAX_LENGTH);
            partialRecord = larger.writeBytes(partialRecord);
        }
        partialRecord.writeBytes(in, bytes);
    }

    /**
     * Charges the connection for the incomplete record, and for records without application data. The TLS engine can
     * keep the content of records without application data, for example the beginning of a split message.
     *
     * @param recordBytes size, in bytes, that the incomplete record will have; 0 if there is no incomplete record to
     *     charge
     * @return false if the ledger has no room; this method has closed the connection in this case
     */
    private boolean charge(int recordBytes) {
        long silent = silentBytes > UnchargedAllowance.MAX_SMALL_BYTES ? silentBytes : 0;
        if (claim.set(silent + recordBytes, nanoTime())) {
            return true;
        }
        closeForRoom();
        return false;
    }

    /**
     * Closes the connection because the ledger has no room for the peer's records. The next handlers in the pipeline
     * are notified first, so that they do not report the close as the peer's fault.
     */
    private void closeForRoom() {
        if (context != null) {
            context.fireUserEventTriggered(SocketQueue.NO_ROOM);
        }
        close();
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        if (!isOver) {
            boolean isCut = partialRecord.readableBytes() > UnchargedAllowance.MAX_SMALL_BYTES;
            if (isCut || silentBytes > UnchargedAllowance.MAX_SMALL_BYTES) {
                charge(isCut ? length(partialRecord, 0) : 0);
            } else {
                claim.release();
            }
            reportPart(ctx);
        }
        ctx.fireChannelReadComplete();
    }

    /**
     * Notifies the next handlers that the peer is alive, if a part of an incomplete record has arrived and the time for
     * this record is not over. The next handlers themselves get only complete records, and would not notice the part.
     */
    private void reportPart(ChannelHandlerContext ctx) {
        boolean isReported = hasPart
                && partialRecord.isReadable()
                && readingClock.remaining(sinceNanos + recordNanos, nanoTime()) > 0;
        hasPart = false;
        if (isReported) {
            ctx.fireUserEventTriggered(SocketQueue.PART);
        }
    }

    private long nanoTime() {
        return channel.eventLoop().ticker().nanoTime();
    }

    /**
     * Starts the timer that closes the connection if the incomplete record is not completed in time. Does nothing if
     * the timer is running. One timer serves all records: when the timer expires, {@link #look} starts it again if the
     * current record has time left.
     */
    private void startTimer(long nanos) {
        if (timer == null) {
            timer = channel.eventLoop().schedule(this::look, nanos, TimeUnit.NANOSECONDS);
            timers.add(1);
        }
    }

    private void look() {
        timer = null;
        timers.release();
        if (partialRecord.readableBytes() <= UnchargedAllowance.MAX_SMALL_BYTES) {
            return;
        }
        long left = readingClock.remaining(sinceNanos + recordNanos, nanoTime());
        if (left > 0) {
            startTimer(left);
        } else {
            close();
        }
    }

    /**
     * Closes the connection without sending an ERROR frame. Bypasses the TLS engine, which would delay the close until
     * its close_notify has been sent.
     */
    private void close() {
        over();
        if (context != null) {
            context.close();
        }
    }

    private void over() {
        isOver = true;
        partialRecord = Unpooled.EMPTY_BUFFER;
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
