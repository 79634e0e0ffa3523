package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What stands in a socket's queue because the peer has not read it, with the claim for it. Both end with the channel,
 * and not with the connection on it, which may be over for seconds while its last words wait to leave. Connections of
 * both wires have one. Event loop only.
 */
final class SocketQueue {
    /**
     * An event of {@link TlsRecords}, which ends the connection for want of room. Here, so that no class is loaded for
     * it.
     */
    static final Object NO_ROOM = new Object();

    /** Another one: a part of a record has come, and its end may still come in time. */
    static final Object PART = new Object();

    private final Channel channel;
    private final EventLoop loop;
    private final Claim claim;

    /** For replies that wait behind the queue. */
    private final Claim replies;

    private final LongSupplier replyBytes;
    private final LongSupplier gatheredBytes;
    private final Runnable changed;
    private final Runnable unread;

    /** The connection has been pushed out: its queue grows no more. */
    private boolean isCut;

    /**
     * A task is due that pushes the connection out: what it has no room for is asked for once, since each time costs a
     * walk over all claims.
     */
    private boolean isCutDue;

    /** The connection is over: what is still charged of its replies does not wait for the peer. */
    private boolean isDropped;

    /** A mark stands in the queue, behind all that was there when it came. */
    private boolean isMarked;

    private long marksLeft;

    /** What the last question saw: marks that had left, the queue's first message and the rest of that. */
    private long marksSeen;

    private @Nullable Object firstSeen;
    private long restSeen;

    /**
     * @param replyBytes how much is charged of replies that have been made for the peer and have not left
     * @param gatheredBytes what waits to join the queue
     * @param changed all that stood in the queue at some time has left it
     * @param unread ends the connection over a peer that does not read; what it still writes may be lost
     */
    SocketQueue(
            Channel channel,
            Account account,
            LongSupplier replyBytes,
            LongSupplier gatheredBytes,
            Runnable changed,
            Runnable unread) {
        this.channel = channel;
        this.loop = channel.eventLoop();
        this.claim = new Claim(account, Resource.QUEUE_BYTES, loop, this::cut);
        this.replies = new Claim(account, Resource.UNREAD_REPLY_BYTES, loop, this::cut);
        this.replyBytes = replyBytes;
        this.gatheredBytes = gatheredBytes;
        this.changed = changed;
        this.unread = unread;
        channel.closeFuture().addListener(closed -> {
            claim.close();
            dropReplies();
        });
    }

    /** The connection is over: no replies wait any more, though the queue may. */
    void dropReplies() {
        isDropped = true;
        replies.close();
    }

    /**
     * The queue may be shorter or longer than before. What is more than a little is charged; where there is no room, the
     * peer's connection ends if it costs the others most.
     */
    void look() {
        lookAtReplies();
        if (isCutDue) {
            return;
        }
        long bytes = bytes();
        if (bytes <= Uncharged.SMALL_BYTES) {
            claim.release();
            if (bytes == 0) {
                return;
            }
        } else if (isCut) {
            return;
        } else if (bytes != claim.bytes() && !claim.set(bytes, loop.ticker().nanoTime())) {
            cutSoon();
            return;
        }
        if (!isMarked) {
            isMarked = true;
            channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(taken -> {
                // behind the end of the stream there are no marks
                if (taken.isSuccess()) {
                    markHasLeft();
                }
            });
        }
    }

    /** Whose peer takes nothing lets all wait that has been made for it, whenever that came. */
    private void lookAtReplies() {
        if (isCutDue) {
            return;
        }
        long waiting = isCut || isDropped || channel.isWritable() ? 0 : replyBytes.getAsLong();
        if (waiting != replies.bytes() && !replies.set(waiting, loop.ticker().nanoTime())) {
            cutSoon();
        }
    }

    /** The queue is shorter than before. */
    void shortened() {
        long bytes = bytes();
        if (bytes <= Uncharged.SMALL_BYTES) {
            claim.release();
        } else if (bytes < claim.bytes()) {
            claim.set(bytes, loop.ticker().nanoTime());
        }
        // those of a reply that leaves are given back as it does: whoever reads pays for the rest alone
        long waiting = replyBytes.getAsLong();
        if (waiting < replies.bytes()) {
            replies.set(waiting, loop.ticker().nanoTime());
        }
    }

    private long bytes() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        return queue == null ? 0 : queue.totalPendingWriteBytes() + gatheredBytes.getAsLong();
    }

    /** The look is in a task of its own: the queue counts a message until its listeners have been told. */
    private void markHasLeft() {
        try {
            loop.execute(() -> {
                isMarked = false;
                marksLeft++;
                claim.renew(loop.ticker().nanoTime());
                replies.renew(loop.ticker().nanoTime());
                look();
                changed.run();
            });
        } catch (RejectedExecutionException ended) {
            // the channel has ended with the loop, and the claim with the channel
        }
    }

    /** In a task of its own: whoever looks is in the midst of writing. */
    private void cutSoon() {
        isCutDue = true;
        boolean isTold = false;
        try {
            loop.execute(this::cut);
            isTold = true;
        } finally {
            if (!isTold) {
                // nobody asks again
                closeNow(channel);
            }
        }
    }

    private void cut() {
        isCut = true;
        try {
            unread.run();
        } finally {
            closeNow(channel);
        }
    }

    /** Not by way of the pipeline: TLS would hold the queue for some seconds, to have its own last word leave. */
    static void closeNow(Channel channel) {
        channel.unsafe().close(channel.unsafe().voidPromise());
    }

    /**
     * Whether something stands in the queue, and not one byte has left it since this was asked last. What has come to
     * the queue meanwhile says nothing about that. By one who asks.
     */
    boolean isStandingStill() {
        ChannelOutboundBuffer queue = channel.unsafe().outboundBuffer();
        boolean isEmpty = queue == null || queue.totalPendingWriteBytes() == 0;
        // what stands before a mark is never behind it again: while no mark leaves, the same first message is the same
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
