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
 * Watches the queue of a socket. In this queue stand the bytes that the peer has not read. A {@code SocketQueue} has
 * one claim for these bytes, and another one for the replies that wait behind these bytes. The queue and its claim end
 * when the channel ends, and not when the connection that uses the channel ends: after the end of the connection, its
 * last messages may still wait for seconds to be sent. Connections of both wires have a {@code SocketQueue}. Event loop
 * only.
 */
public final class SocketQueue {
    /**
     * Event that {@link TlsRecords} fires when it is about to end the connection for want of room. It is defined here
     * so that a connection without TLS need not load that class to compare events.
     */
    public static final Object NO_ROOM = new Object();

    /** Event that {@link TlsRecords} fires when a part of a record has come whose end may still come in time. */
    public static final Object PART = new Object();

    private final Channel channel;
    private final EventLoop loop;
    private final Claim claim;

    /** Claim for the replies that wait behind the queue. */
    private final Claim replies;

    private final LongSupplier replyBytes;
    private final LongSupplier gatheredBytes;
    private final Runnable changed;
    private final Runnable unread;

    /** True once the connection has been ended for want of room: from then on its queue does not grow. */
    private boolean isEvicted;

    /**
     * True once a task is due that ends the connection for want of room. From then on the queue asks for no more room,
     * since each time that it asks costs a walk over all claims.
     */
    private boolean isEvictionDue;

    /** True once the connection is over: replies that are still charged do not wait for the peer any more. */
    private boolean isDropped;

    /**
     * True while a mark stands in the queue. A mark is an empty write. It is written behind everything that is in the
     * queue at that time. So once the mark has been sent, everything that stood before it has been sent too.
     */
    private boolean isMarked;

    private long marksSent;

    /** Value of {@code marksSent} at the last call of {@code isStalled}; -1 if the queue was empty then. */
    private long marksSeen;

    /** First message in the queue at the last call of {@code isStalled}; null if the queue was empty then. */
    private @Nullable Object firstSeen;

    /** Number of remaining bytes of {@code firstSeen} at the last call of {@code isStalled}. */
    private long restSeen;

    /**
     * Begins to watch the queue of a channel.
     *
     * @param replyBytes supplies the number of bytes charged for replies that have been made for the peer and have not
     *     been sent
     * @param gatheredBytes supplies the number of bytes that wait to join the queue
     * @param changed runs when a mark (see {@code isMarked}) has been sent, and so everything that stood in the queue
     *     before the mark
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

    /** Called when the connection is over: from then on no replies wait, though there may be bytes in the queue. */
    public void dropReplies() {
        isDropped = true;
        replies.close();
    }

    /**
     * Called when the queue may have become shorter or longer. A queue of more than
     * {@code UnchargedAllowance.SMALL_BYTES} is charged. If there is no room for this charge, this connection ends,
     * unless room is made by ending connections that hold more.
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
                // the write of a mark fails if this side has already ended its stream of bytes; that failure needs no
                // reaction
                if (taken.isSuccess()) {
                    markSent();
                }
            });
        }
    }

    /**
     * Charges the replies that wait. If the peer takes nothing, all replies that have been made for it wait, no matter
     * when they were made.
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

    /** Called when the queue has become shorter. Reduces both claims to what still waits. */
    public void shortened() {
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.SMALL_BYTES) {
            claim.release();
        } else if (bytes < claim.bytes()) {
            claim.set(bytes, loop.ticker().nanoTime());
        }
        // the bytes of a reply are released while it is sent: so a peer that reads is charged only for the remaining
        // bytes
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
     * Called when a mark, an empty write (see {@code isMarked}), has been sent. A separate task checks the queue, since
     * the queue counts a message until the listeners of that message have been called.
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
            // the event loop has ended. So the channel has ended too, and with the channel the claims have ended
        }
    }

    /**
     * Ends the connection for want of room. A separate task does this, since the caller of {@code updateClaims} is in
     * the midst of writing.
     */
    private void evictSoon() {
        isEvictionDue = true;
        boolean isQueued = false;
        try {
            loop.execute(this::evict);
            isQueued = true;
        } finally {
            if (!isQueued) {
                // the task could not be added. Since isEvictionDue is true, this class will not try again, so the
                // channel is closed here
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
     * Closes the channel immediately, and not through the pipeline: there TLS would hold the queue for some seconds so
     * that its close_notify can be sent.
     */
    public static void closeNow(Channel channel) {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    /**
     * Says whether there are bytes in the queue and not one byte has been sent since this method was called last. Bytes
     * that were added to the queue meanwhile make no difference. Only one user may call this method, since the method
     * compares with what it found at its last call.
     */
    public boolean isStalled() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        boolean isEmpty = queue == null || queue.totalPendingWriteBytes() == 0;
        // the first message in the queue may be an object that has been sent since the last call, and has then been
        // written again. In that case the object stands behind a mark (see isMarked), and that mark has been sent. So
        // if no mark has been sent since the last call, the same object is still the same message
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
