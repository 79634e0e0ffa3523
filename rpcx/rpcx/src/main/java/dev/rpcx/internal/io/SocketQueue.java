package dev.rpcx.internal.io;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Watches the queue of bytes that a channel has not yet been able to write to its socket. The peer has not read these
 * bytes. One claim charges the connection for them, and another for the replies that wait behind them. If the ledger
 * has no room, a connection ends, see {@link Claim}. The claim for the queue ends with the channel. That may be seconds
 * after the end of the connection, since the last messages may still have to be sent. Used on both wires. Event loop
 * only.
 */
public final class SocketQueue {
    /**
     * Event that {@link TlsRecords} fires before it ends the connection because the ledger has no room for what has
     * arrived of the peer's records. Defined here so that connections without TLS do not load that class.
     */
    public static final Object NO_ROOM = new Object();

    /**
     * Event that {@link TlsRecords} fires when a part of a TLS record has arrived. The rest may still arrive in time.
     */
    public static final Object PART = new Object();

    private final Channel channel;
    private final EventLoop loop;
    private final Claim claim;

    /** Claim for the replies that wait behind the bytes in the queue. */
    private final Claim replies;

    private final LongSupplier replyBytes;
    private final LongSupplier gatheredBytes;
    private final Runnable changed;
    private final Runnable unread;

    /** True once the connection has been ended because a pool of the ledger was full. Its queue then grows no more. */
    private boolean isEvicted;

    /**
     * True once a task is scheduled that ends the connection because the ledger had no room for the bytes in its queue,
     * or for its replies. Nothing more is charged then.
     */
    private boolean isEvictionDue;

    /** True once the connection is over; then its replies are no longer charged here. */
    private boolean isDropped;

    /**
     * True while a mark is in the queue. A mark is an empty write: when it has been sent, everything before it has been
     * sent.
     */
    private boolean isMarked;

    private long marksSent;

    /** Number of marks that had been sent at the last call of {@code isStalled}; -1 if the queue was empty then. */
    private long marksSeen;

    /** First message in the queue at the last call of {@code isStalled}; null if the queue was empty then. */
    private @Nullable Object firstSeen;

    /** Number of bytes of {@code firstSeen} that had not been sent at the last call of {@code isStalled}. */
    private long restSeen;

    /**
     * Begins to watch the queue of a channel.
     *
     * @param replyBytes supplies the number of bytes charged for replies that have not been sent
     * @param gatheredBytes supplies the number of bytes that will be added to the queue next
     * @param changed runs when everything has been sent that was in the queue when this class last put a mark into it
     * @param unread ends the connection because its peer does not read; what the connection still writes may be lost
     */
    public SocketQueue(
            Channel channel,
            Account account,
            LongSupplier replyBytes,
            LongSupplier gatheredBytes,
            Runnable changed,
            Runnable unread) {
        this.channel = channel;
        this.loop = channel.eventLoop();
        this.claim = new Claim(account, Resource.QUEUE_BYTES, loop, this::evict);
        this.replies = new Claim(account, Resource.UNREAD_REPLY_BYTES, loop, this::evict);
        this.replyBytes = replyBytes;
        this.gatheredBytes = gatheredBytes;
        this.changed = changed;
        this.unread = unread;
        channel.closeFuture().addListener(closed -> {
            claim.close();
            dropReplies();
        });
    }

    /** Called when the connection is over. Ends the claim for replies, but not the one for the bytes in the queue. */
    public void dropReplies() {
        isDropped = true;
        replies.close();
    }

    /**
     * Called when the queue may have become longer or shorter. Charges the bytes in the queue if they are more than
     * {@code UnchargedAllowance.SMALL_BYTES}, and the replies that wait behind them. If the ledger has no room for
     * these bytes, connections that hold more of them end, or else this one.
     */
    public void updateClaims() {
        chargeReplies();
        if (isEvictionDue) {
            return;
        }
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.SMALL_BYTES) {
            claim.release();
            if (bytes == 0) {
                return;
            }
        } else if (isEvicted) {
            return;
        } else if (bytes != claim.bytes() && !claim.set(bytes, loop.ticker().nanoTime())) {
            evictSoon();
            return;
        }
        if (!isMarked) {
            isMarked = true;
            channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(taken -> {
                // the write of a mark fails if this side has already ended its output
                if (taken.isSuccess()) {
                    markSent();
                }
            });
        }
    }

    /**
     * Charges the replies that wait behind the queue: none while the channel is writable, otherwise all replies that
     * have not been sent.
     */
    private void chargeReplies() {
        if (isEvictionDue) {
            return;
        }
        long waiting = isEvicted || isDropped || channel.isWritable() ? 0 : replyBytes.getAsLong();
        if (waiting != replies.bytes() && !replies.set(waiting, loop.ticker().nanoTime())) {
            evictSoon();
        }
    }

    /** Called when the queue has become shorter. Reduces both claims to the bytes that still wait. */
    public void shortened() {
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.SMALL_BYTES) {
            claim.release();
        } else if (bytes < claim.bytes()) {
            claim.set(bytes, loop.ticker().nanoTime());
        }
        // a reply is released piece by piece while it is sent
        long waiting = replyBytes.getAsLong();
        if (waiting < replies.bytes()) {
            replies.set(waiting, loop.ticker().nanoTime());
        }
    }

    private long bytes() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        return queue == null ? 0 : queue.totalPendingWriteBytes() + gatheredBytes.getAsLong();
    }

    /**
     * Called when the mark in the queue has been sent. A mark is an empty write: everything before it has then been
     * sent too. A separate task updates the claims, since the queue counts a message until the listeners of that
     * message have been called.
     */
    private void markSent() {
        try {
            loop.execute(() -> {
                isMarked = false;
                marksSent++;
                claim.renew(loop.ticker().nanoTime());
                replies.renew(loop.ticker().nanoTime());
                updateClaims();
                changed.run();
            });
        } catch (RejectedExecutionException ended) {
            // the event loop has ended, and with it the channel and the claims
        }
    }

    /**
     * Ends the connection because the ledger has no room for the bytes in its queue, or for its replies. A separate
     * task does so, since the caller of {@code updateClaims} is just writing.
     */
    private void evictSoon() {
        isEvictionDue = true;
        boolean isQueued = false;
        try {
            loop.execute(this::evict);
            isQueued = true;
        } finally {
            if (!isQueued) {
                // isEvictionDue stays true, so nothing else would close the channel
                closeNow(channel);
            }
        }
    }

    private void evict() {
        isEvicted = true;
        try {
            unread.run();
        } finally {
            closeNow(channel);
        }
    }

    /**
     * Closes the channel immediately. Bypasses the pipeline, in which TLS would first wait some seconds to send
     * close_notify.
     */
    public static void closeNow(Channel channel) {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    /**
     * Whether the queue has bytes, and none has been sent since the last call of this method. Bytes that were added
     * meanwhile do not matter. Must have only one user, since each call is compared with the one before.
     */
    public boolean isStalled() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        boolean isEmpty = queue == null || queue.totalPendingWriteBytes() == 0;
        // An object may have been sent and written again since the last call. It then comes behind a mark that has been
        // sent. So if no mark has been sent, the same object is still the same message.
        Object first = isEmpty ? null : queue.current();
        long rest = first instanceof ByteBuf bytes ? bytes.readableBytes() : 0;
        long marks = isEmpty ? -1 : marksSent;
        boolean isSame = !isEmpty && marks == marksSeen && first == firstSeen && rest == restSeen;
        marksSeen = marks;
        firstSeen = first;
        restSeen = rest;
        return isSame;
    }
}
