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
 * Bytes that stand in a socket's queue because the peer has not read them, with the claims for them and for replies
 * behind them. The queue and its claim end with the channel, and not with the connection on it, which may have been
 * over for seconds while its last messages wait to leave. Connections of both wires have a {@code SocketQueue}. Event
 * loop only.
 */
public final class SocketQueue {
    /**
     * Event of {@link TlsRecords}, which is about to end the connection for want of room. It is defined here so that no
     * class is loaded for it.
     */
    public static final Object NO_ROOM = new Object();

    /** Another event of that class: a part of a record has come, and its end may still come in time. */
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

    /** True once the connection has been pushed out: its queue grows no more. */
    private boolean isEvicted;

    /**
     * True once a task is due that pushes the connection out. From then on the queue asks for no more room, since each
     * time costs a walk over all claims.
     */
    private boolean isEvictionDue;

    /** True once the connection is over: replies that are still charged do not wait for the peer any more. */
    private boolean isDropped;

    /** True while a mark stands in the queue: an empty write, behind everything that was there when it came. */
    private boolean isMarked;

    private long marksLeft;

    /**
     * State at the last call of {@code isStalled}: marks that had left, then the queue's first message and the
     * bytes that were left of that.
     */
    private long marksSeen;

    private @Nullable Object firstSeen;
    private long restSeen;

    /**
     * @param replyBytes supplies the bytes charged for replies that have been made for the peer and have not left
     * @param gatheredBytes supplies the bytes that wait to join the queue
     * @param changed runs when everything that stood in the queue at one time has left it
     * @param unread ends the connection because its peer does not read; what it still writes may be lost
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

    /** Called when the connection is over: no replies wait any more, though the queue may. */
    public void dropReplies() {
        isDropped = true;
        replies.close();
    }

    /**
     * Called when the queue may have become shorter or longer. A queue above {@code UnchargedAllowance.SMALL_BYTES} is
     * charged. If there is no room for that, this connection ends, unless the end of connections that hold more makes
     * room.
     */
    public void updateClaims() {
        lookAtReplies();
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
                // a mark behind the end of the stream fails, and says nothing
                if (taken.isSuccess()) {
                    markHasLeft();
                }
            });
        }
    }

    /**
     * Charges the replies that wait. If the peer takes nothing, every reply that has been made for it waits, whenever
     * it was made.
     */
    private void lookAtReplies() {
        if (isEvictionDue) {
            return;
        }
        long waiting = isEvicted || isDropped || channel.isWritable() ? 0 : replyBytes.getAsLong();
        if (waiting != replies.bytes() && !replies.set(waiting, loop.ticker().nanoTime())) {
            evictSoon();
        }
    }

    /** Called when the queue has become shorter. */
    public void shortened() {
        long bytes = bytes();
        if (bytes <= UnchargedAllowance.SMALL_BYTES) {
            claim.release();
        } else if (bytes < claim.bytes()) {
            claim.set(bytes, loop.ticker().nanoTime());
        }
        // the bytes of a reply are released as it leaves: a peer that reads is charged only for the rest
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
     * Called when a mark has left. The queue is looked at in a task of its own, since it counts a message until the
     * listeners of that have been called.
     */
    private void markHasLeft() {
        try {
            loop.execute(() -> {
                isMarked = false;
                marksLeft++;
                claim.renew(loop.ticker().nanoTime());
                replies.renew(loop.ticker().nanoTime());
                updateClaims();
                changed.run();
            });
        } catch (RejectedExecutionException ended) {
            // the channel has ended with the loop, and the claim with the channel
        }
    }

    /**
     * Pushes the connection out in a task of its own, since the caller of {@code updateClaims} is in the midst of
     * writing.
     */
    private void evictSoon() {
        isEvictionDue = true;
        boolean isTold = false;
        try {
            loop.execute(this::evict);
            isTold = true;
        } finally {
            if (!isTold) {
                // no task is due, and isEvictionDue keeps this class from asking again
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
     * Closes the channel at once, and not by way of the pipeline: TLS would hold the queue for some seconds so that its
     * close_notify can leave.
     */
    public static void closeNow(Channel channel) {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    /**
     * Whether something stands in the queue, and not one byte has left it since this method was called last. Bytes that
     * have come to the queue meanwhile make no difference. Only one user may call this method, since it keeps what it
     * has seen.
     */
    public boolean isStalled() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        boolean isEmpty = queue == null || queue.totalPendingWriteBytes() == 0;
        // what stands before a mark is never behind it again: while no mark has left, the same object is still the same
        // first message
        Object first = isEmpty ? null : queue.current();
        long rest = first instanceof ByteBuf bytes ? bytes.readableBytes() : 0;
        long marks = isEmpty ? -1 : marksLeft;
        boolean isSame = !isEmpty && marks == marksSeen && first == firstSeen && rest == restSeen;
        marksSeen = marks;
        firstSeen = first;
        restSeen = rest;
        return isSame;
    }
}
