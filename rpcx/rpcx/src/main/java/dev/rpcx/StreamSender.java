package dev.rpcx;

import dev.rpcx.codec.Codec;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The items of one call that go out: asks its publisher for as many as the peer gave credit for. One message of the call leaves after the
 * other, since large ones go in parts: this is the one link in the outbox for all of them.
 */
final class StreamSender extends Outbound implements Flow.Subscriber<Object> {
    /** One message, not yet cut into frames. */
    private record Message(int head, ByteBuf body) {}

    private final WireConnection connection;
    private final Codec<Object> codec;
    private final int lastHead;
    private final Consumer<Throwable> failed;
    private final Runnable lastLeft;
    private final Queue<Message> messages = new ConcurrentLinkedQueue<>();
    private final AtomicInteger queued = new AtomicInteger();
    private volatile boolean over;

    // guarded by this
    private Flow.@Nullable Subscription subscription;
    private long credit;

    /**
     * @param lastHead type of the frame that says that no more items come
     * @param failed told on the publisher's thread of what it or the codec threw
     * @param lastLeft run on the event loop when the last message has left
     */
    StreamSender(
            WireConnection connection,
            int callId,
            Codec<Object> codec,
            int lastHead,
            Consumer<Throwable> failed,
            Runnable lastLeft) {
        this.connection = connection;
        this.id = callId;
        this.codec = codec;
        this.lastHead = lastHead;
        this.failed = failed;
        this.lastLeft = lastLeft;
    }

    // ---- on the event loop

    void onCredit(long items) {
        Flow.Subscription to;
        synchronized (this) {
            to = subscription;
            if (to == null) {
                credit = Math.min(Long.MAX_VALUE - items, credit) + items;
            }
        }
        if (to != null && items > 0) {
            to.request(items);
        }
    }

    void cancel() {
        over = true;
        connection.recall(this);
        Flow.Subscription to;
        synchronized (this) {
            to = subscription;
        }
        if (to != null) {
            to.cancel();
        }
    }

    @Override
    boolean leaving() {
        Message next = over ? null : messages.poll();
        if (next == null) {
            return false;
        }
        head = next.head;
        clearBody();
        body.writeBytes(next.body);
        return true;
    }

    @Override
    void left() {
        if (head != Wire.ITEM) {
            over = true;
            lastLeft.run();
        } else if (queued.decrementAndGet() > 0) {
            connection.send(this);
        }
    }

    @Override
    void lost() {
        cancel();
    }

    // ---- on the publisher's thread

    @Override
    public void onSubscribe(Flow.Subscription given) {
        long wanted;
        synchronized (this) {
            subscription = given;
            wanted = credit;
            credit = 0;
        }
        if (over) {
            given.cancel();
        } else if (wanted > 0) {
            given.request(wanted);
        }
    }

    @Override
    public void onNext(Object item) {
        ByteBuf bytes = Unpooled.buffer();
        try {
            codec.write(item, bytes);
        } catch (RuntimeException e) {
            Flow.Subscription to;
            synchronized (this) {
                to = subscription;
            }
            if (to != null) {
                to.cancel();
            }
            failed.accept(e);
            return;
        }
        add(Wire.ITEM, bytes);
    }

    @Override
    public void onError(Throwable thrown) {
        failed.accept(thrown);
    }

    @Override
    public void onComplete() {
        add(lastHead, Unpooled.EMPTY_BUFFER);
    }

    /** Queues a message behind those before it; any but an item is the last. */
    void add(int messageHead, ByteBuf bytes) {
        if (over) {
            return;
        }
        messages.add(new Message(messageHead, bytes));
        if (queued.getAndIncrement() == 0) {
            connection.send(this);
        }
    }
}
