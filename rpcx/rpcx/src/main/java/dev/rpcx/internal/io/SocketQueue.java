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
 * Observes the bytes that wait in a channel's queue because the peer does not read. One {@link Claim} charges the
 * connection for these bytes, and another {@code Claim} charges the connection for the replies that wait behind these
 * bytes. If the ledger has no room, {@link Claim} ends other connections. If the room is still too small, this
 * connection is ended. Used by both sides of the native wire and by servers of the classic wire, and only on the event
 * loop.
 *
 * <p>After the end of the connection, the bytes that remain in the queue stay charged until the channel is closed. The
 * close can come seconds later, because the last messages may still have to be sent.
 */
public final class SocketQueue {
    /**
     * Event that {@link TlsRecords} fires before it closes a connection because the ledger has no room for the
     * connection's TLS records. This constant stands here so that connections without TLS do not load
     * {@code TlsRecords}.
     */
    public static final Object NO_ROOM = new Object();

    /**
     * Event that {@link TlsRecords} fires when a part of a TLS record has arrived, and the rest can still arrive in
     * time. The event notifies the connection that the peer is alive.
     */
    public static final Object PART = new Object();

    private final Channel channel;
    private final EventLoop loop;
    private final Claim claim;

    /** Charges the connection for its unsent replies while the channel is not writable. */
    private final Claim replies;

    private final LongSupplier replyBytes;
    private final LongSupplier gatheredBytes;
    private final Runnable changed;
    private final Runnable unread;

    /**
     * Whether the connection has been ended because the ledger had no room. From then on, nothing is added to the
     * queue, and this class charges nothing more.
     */
    private boolean isEvicted;

    /**
     * Whether the end of the connection has been scheduled, because the ledger has no room for the bytes in the queue,
     * or for replies. From then on, this class charges nothing more.
     */
    private boolean isEvictionDue;

    /** Whether the connection is over. From then on, this class does not charge for replies. */
    private boolean isDropped;

    /**
     * Whether a mark has been put into the queue, and the update that {@link #markSent} schedules has not run yet.
     * Stays true if a mark could not be sent. A mark is an empty message: when the mark has been sent, all messages
     * before the mark have been sent too.
     */
    private boolean isMarked;

    private long marksSent;

    /**
     * Number of marks, that is, empty messages, that had been sent when {@link #isStalled} was last called; -1 if the
     * queue was empty at that call.
     */
    private long marksSeen;

    /** First message in the queue when {@link #isStalled} was last called; null if the queue was empty at that call. */
    private @Nullable Object firstSeen;

    /** Number of unsent bytes of the message {@code firstSeen} when {@link #isStalled} was last called. */
    private long restSeen;

    /**
     * Starts to observe the queue of a channel.
     *
     * @param replyBytes supplies the number of bytes that the account has been charged for unsent replies
     * @param gatheredBytes supplies the size, in bytes, of the buffer with the output that the connection has gathered
     *     and will write to the channel next; 0 if there is no such buffer
     * @param changed runs each time that a mark has been sent. A mark is an empty message that {@link #updateClaims}
     *     adds to the queue. When it has been sent, all messages before it have been sent too. Before {@code changed}
     *     runs, this class updates the charges
     * @param unread ends the connection because the peer does not read; unsent output can be lost
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

    /**
     * Stops charging for replies, because the connection is over. The bytes that remain in the queue stay charged until
     * the channel is closed.
     */
    public void dropReplies() {
        isDropped = true;
        replies.close();
    }

    /**
     * Updates the charges for the bytes in the queue and for the waiting replies. Called when the queue may have become
     * longer or shorter. The bytes in the queue are charged only if they are more than
     * {@code UnchargedAllowance.MAX_SMALL_BYTES}. If the ledger has no room, {@link Claim} ends other connections. If
     * the room is still too small, this method schedules a task that ends this connection.
     */
    public void updateClaims() {
        chargeReplies();
        if (isEvictionDue) {
            return;
        }
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.MAX_SMALL_BYTES) {
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
                // writing this empty message fails if this side has already shut down the output of the channel
                if (taken.isSuccess()) {
                    markSent();
                }
            });
        }
    }

    /**
     * Charges the connection for all its unsent replies while the channel is not writable. While the channel is
     * writable, nothing is charged, because the replies do not wait for the peer.
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

    /**
     * Reduces two charges to the bytes that still wait: the charge for the queue, and the charge for unsent replies. If
     * at most {@code UnchargedAllowance.MAX_SMALL_BYTES} wait in the queue, the charge for the queue is released
     * altogether. Called when the queue has become shorter.
     */
    public void shortened() {
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.MAX_SMALL_BYTES) {
            claim.release();
        } else if (bytes < claim.bytes()) {
            claim.set(bytes, loop.ticker().nanoTime());
        }
        // a reply is sent piece by piece, and a piece that has been sent is no longer charged
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
     * Schedules an update of the charges. Called by the listener of a mark when the mark has been sent. A mark is an
     * empty message, and all messages before the mark have been sent too. The update is a task of its own, because the
     * queue still counts a message while the message's listeners run.
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
            // the event loop has ended, so the channel is closed and nothing is charged any more
        }
    }

    /**
     * Schedules the end of the connection, because the ledger has no room for the bytes in the queue, or for replies.
     * The end is a task of its own, because the caller of {@link #updateClaims} can be writing to the channel.
     */
    private void evictSoon() {
        isEvictionDue = true;
        boolean isQueued = false;
        try {
            loop.execute(this::evict);
            isQueued = true;
        } finally {
            if (!isQueued) {
                // The task could not be scheduled, and isEvictionDue prevents any later try. Therefore the channel
                // is closed here.
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
     * Closes the channel immediately, without passing through its pipeline. The TLS handler in the pipeline would delay
     * the close until close_notify has been sent, for some seconds if the peer does not read.
     */
    public static void closeNow(Channel channel) {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    /**
     * Returns whether the queue has bytes and had bytes at the last call of this method, and no bytes have been sent
     * since that call. Bytes that were added to the queue make no difference. Only one user may call this method,
     * because each call is compared with the call before.
     */
    public boolean isStalled() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        boolean isEmpty = queue == null || queue.totalPendingWriteBytes() == 0;
        // If the first message is the same object as at the last call, the message can still have been sent: the object
        // can be in the queue again, for a later message. In that case, a mark (an empty message) was sent in between,
        // so marksSent has changed. Therefore marksSent is compared too.
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
