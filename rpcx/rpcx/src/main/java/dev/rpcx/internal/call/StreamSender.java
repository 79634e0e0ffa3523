package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Sends the items that a publisher makes for the outgoing stream of one call. The publisher is asked for no more items
 * than the peer has given credit for, and for no more at a time than fill {@link #WINDOW_BYTES}. The connection is
 * charged for each item until the item has been sent.
 *
 * <p>This object sends all messages of the call, one after the other, since parts of different messages must not mix.
 * {@link #signals} requests items from the publisher and cancels it. At a server, this happens where the method's
 * handlers run; at a client, on the thread that finds that it is due, or on the event loop.
 */
public final class StreamSender extends Outbound implements Flow.Subscriber<Object> {
    /**
     * Max number of bytes of items that wait for the socket. The publisher is asked for more items only while at most
     * half of these bytes wait. This half is as much as one write takes, so the socket stays busy meanwhile.
     */
    public static final int WINDOW_BYTES = 64 * 1024;

    /** Is told why a stream fails. Any thread may call it. */
    @FunctionalInterface
    public interface Failed {
        /**
         * Called if no more items can be sent: the publisher has failed or has broken a rule of Reactive Streams, the
         * codec has thrown an exception, or there was no room for an item.
         */
        void onFailure(Throwable thrown);

        /** Called if an item is larger than this side or the peer allows for a message. */
        default void tooLarge(RPCXException why) {
            onFailure(why);
        }
    }

    /**
     * Max capacity, in bytes, of the buffer of a last message that may be sent without a charge for its memory. An
     * error without a text takes less.
     */
    private static final int SMALL_END_BYTES = 64;

    /** Number of bytes that the connection is charged for each message in addition to the bytes of its buffer. */
    private static final int ITEM_BYTES = 128;

    /**
     * A message that waits until it is written into frames. {@code cost} is the number of bytes charged for it. It is 0
     * for a last message that has to be sent although it could not be charged.
     */
    private record Message(int head, ByteBuf body, long cost) {}

    private final WireConnection connection;
    private final Codec<Object> codec;
    private final int lastHead;
    private final Failed failed;
    private final Runnable onLastSent;
    private final SerialExecutor signals;

    // the fields from here to hasPublisher are guarded by this object's lock
    private final Queue<Message> messages = new ArrayDeque<>();

    /**
     * Charge for the memory of all messages: the sum of {@link #waitingCost} and {@link #leavingCost}. It is always set
     * to this sum or released as a whole, so that nothing can be released twice.
     */
    private final Charge bytes;

    /** Number of bytes that are charged for {@link #messages}, which wait to be sent. */
    private long waitingCost;

    /** Number of bytes that are charged for the message in {@link #body}, which is being sent. */
    private long leavingCost;

    private final Charge stream;
    private Flow.@Nullable Subscription subscription;

    /** Number of items that the peer has given credit for, and that the publisher has not been asked for. */
    private long credit;

    /** Number of items that the publisher has been asked for, and has not made yet. */
    private long asked;

    /**
     * Number of bytes that the next item will probably be charged for. It is the charge of the latest item, or half of
     * the previous value of this field if that is more.
     */
    private long itemCost = WINDOW_BYTES;

    /** Whether this object waits in the outbox of the connection, or is about to be put there. */
    private boolean queued;

    /**
     * Whether no more items are taken from the publisher, since the last message has been added or the stream has been
     * cancelled.
     */
    private boolean complete;

    /**
     * Whether the stream has failed on this side, so that the publisher is cancelled. Whatever the publisher signals
     * after that is ignored, even during its own {@code cancel}.
     */
    private boolean failing;

    /** Whether the stream has ended, so that nothing of it is sent any more. */
    private boolean over;

    /** Whether this object has subscribed to the publisher, or is about to. */
    private boolean hasPublisher;

    /**
     * Task that runs on the event loop when the peer gives its first credit. Null if there is no such task, or if it
     * has run.
     */
    private @Nullable Runnable onFirstCredit;

    /**
     * Creates the sender of the outgoing stream of one call.
     *
     * @param lastHead type of the frame that tells the peer that all items have been sent
     * @param failed is told why no more items can be sent; it may add an error as the last message
     * @param onLastSent runs on the event loop when the last message has been sent
     * @param executor runs what is called on the publisher: subscribe (except in {@link #subscribeHere}), request and
     *     cancel. If it is null, each of these runs on the thread that finds that it is due, or on the event loop after
     *     many in a row
     */
    public StreamSender(
            WireConnection connection,
            int callId,
            Codec<Object> codec,
            int lastHead,
            Failed failed,
            Runnable onLastSent,
            @Nullable Executor executor) {
        this.connection = connection;
        this.id = callId;
        this.codec = codec;
        this.lastHead = lastHead;
        this.failed = failed;
        this.onLastSent = onLastSent;
        this.signals = new SerialExecutor(executor, executor == null ? connection.loop() : executor);
        this.bytes = connection.account.charge(Resource.ITEM_BYTES_OUT);
        this.stream = connection.account.charge(Resource.STREAMS);
    }

    // ---- any thread

    /**
     * Subscribes to the publisher in a task of {@link #signals}. Called at most once. The stream counts as one of the
     * connection's streams immediately, since the task may wait long for a thread.
     *
     * @param begins runs just before the subscription, or when it is certain that there will be none
     */
    public void subscribeTo(Flow.Publisher<Object> publisher, Runnable begins) {
        if (!hold(publisher)) {
            begins.run();
            return;
        }
        signals.execute(() -> {
            begins.run();
            subscribe(publisher);
        });
    }

    /** Subscribes to the publisher immediately, on the calling thread, which is the one that sends the call. */
    public void subscribeHere(Flow.Publisher<Object> publisher) {
        if (hold(publisher)) {
            subscribe(publisher);
        }
    }

    /**
     * Counts this stream as one of the connection's streams.
     *
     * @return false if the stream is over, or if it fails now since there are too many streams
     */
    private boolean hold(Flow.Publisher<Object> publisher) {
        RPCXException refused;
        synchronized (this) {
            if (!over && stream.add(1)) {
                return true;
            }
            refused = over
                    ? null
                    : new RPCXException(RPCXException.Code.OVERLOADED, "too many streams on this connection or server");
        }
        if (publisher instanceof WatchedStream watched) {
            // watched.ended may write to a log and so block, and this thread may be the event loop
            Interceptor.aside(() -> signals.execute(() -> watched.ended(refused)));
        }
        if (refused != null) {
            onError(refused);
        }
        return false;
    }

    private void subscribe(Flow.Publisher<Object> publisher) {
        boolean isOver;
        synchronized (this) {
            isOver = over;
            hasPublisher |= !isOver;
        }
        if (isOver) {
            // the stream is over and no longer counted: the publisher is not subscribed to, only notified
            WatchedStream.ended(publisher, null);
            return;
        }
        try {
            publisher.subscribe(this);
        } catch (Throwable t) {
            onError(t);
        }
    }

    /**
     * Says whether this object has subscribed to the publisher, or is about to. The result no longer changes once the
     * stream has been cancelled.
     */
    public synchronized boolean hasPublisher() {
        return hasPublisher;
    }

    /**
     * Sets a task that runs when the peer gives its first credit. It has to be set before anything of the call is sent.
     */
    public void onFirstCredit(Runnable task) {
        onFirstCredit = task;
    }

    public void onCredit(long items) {
        Runnable task = onFirstCredit;
        if (task != null) {
            onFirstCredit = null;
            task.run();
        }
        synchronized (this) {
            credit = Math.min(Long.MAX_VALUE - items, credit) + items;
        }
        ask();
    }

    /**
     * Asks the publisher for more items, once it has made all that it was asked for before. It is asked for as many as
     * there is credit and room for. The caller must not hold this object's lock, since the publisher may make items
     * within its {@code request}.
     */
    private void ask() {
        Flow.Subscription to;
        long wanted;
        synchronized (this) {
            to = subscription;
            if (to == null || over || complete || credit == 0 || asked > 0 || 2 * bytes.held() > WINDOW_BYTES) {
                return;
            }
            long fit = Math.max(1, (WINDOW_BYTES - bytes.held()) / itemCost);
            wanted = Math.min(credit, fit);
            credit -= wanted;
            asked = wanted;
        }
        Flow.Subscription publisher = to;
        long items = wanted;
        signals.execute(() -> {
            try {
                publisher.request(items);
            } catch (Throwable t) {
                // the publisher will make no more items, and its call would wait for them
                cutOff(t);
            }
        });
    }

    public void cancel() {
        Flow.Subscription to;
        synchronized (this) {
            if (over) {
                return;
            }
            to = complete ? null : subscription;
            end();
            complete = true;
        }
        try {
            connection.recall(this);
            if (to != null) {
                signals.execute(to::cancel);
            }
        } finally {
            releaseStreamCharge();
        }
        shrinkBody();
    }

    private void end() {
        over = true;
        // a publisher may keep this object in memory, which must not keep the publisher
        subscription = null;
        dropWaiting();
        leavingCost = 0;
        bytes.release();
    }

    /**
     * Stops counting this stream as one of the connection's streams, once no call on its publisher runs or waits. Until
     * then, the publisher may keep a thread busy.
     */
    private void releaseStreamCharge() {
        signals.atEnd(() -> {
            synchronized (this) {
                stream.release();
            }
        });
    }

    private void dropWaiting() {
        messages.clear();
        waitingCost = 0;
        bytes.set(leavingCost);
    }

    // ---- on the event loop

    @Override
    public boolean beforeSend() {
        synchronized (this) {
            Message next = over ? null : messages.poll();
            if (next == null) {
                queued = false;
                return false;
            }
            head = next.head;
            leavingCost = next.cost;
            waitingCost -= next.cost;
            clearBody();
            if (body.capacity() > next.body.capacity()) {
                // the item is charged only for its own bytes, so a buffer that is larger than the item is made small
                // first
                shrinkBody();
            }
            HeapArray.grow(body, next.body.readableBytes());
            body.writeBytes(next.body);
        }
        // while the socket is busy, this message waits on the heap
        holdUntilWritable = connection.isSocketBusy();
        return true;
    }

    @Override
    public void onSent() {
        boolean wasLast = head != Wire.ITEM;
        boolean more;
        synchronized (this) {
            if (over) {
                queued = false;
                shrinkBody();
                return;
            }
            more = !messages.isEmpty();
            queued = more;
            if (!more && body.capacity() > FIRST_BYTES) {
                // the buffer is given up together with its charge: a stream that waits for credit holds no item
                shrinkBody();
            }
            leavingCost = 0;
            bytes.set(waitingCost);
            if (wasLast) {
                end();
            }
        }
        if (wasLast) {
            releaseStreamCharge();
            onLastSent.run();
        } else if (more) {
            connection.send(this);
        }
        ask();
    }

    @Override
    public void onDropped() {
        cancel();
    }

    // ---- where the publisher runs

    @Override
    public void onSubscribe(Flow.@Nullable Subscription given) {
        if (given == null) {
            onError(new NullPointerException("a publisher gave no subscription (expected: one)"));
            return;
        }
        boolean taken;
        synchronized (this) {
            taken = subscription == null && !failing && !over;
            if (taken) {
                subscription = given;
            }
        }
        if (taken) {
            ask();
        } else {
            given.cancel();
        }
    }

    @Override
    public void onNext(Object item) {
        ByteBuf encoded = Unpooled.buffer();
        try {
            codec.write(
                    Objects.requireNonNull(item, "an item is null (expected: a value, since a stream has no null)"),
                    encoded);
        } catch (CodecException e) {
            if (e.code() == CodecException.Code.TOO_LARGE) {
                refuseLarge(
                        new RPCXException(RPCXException.Code.TOO_LARGE, "an item cannot be sent: " + e.getMessage()));
            } else {
                cutOff(e);
            }
            return;
        } catch (Throwable t) {
            cutOff(t);
            return;
        }
        if (encoded.readableBytes() > connection.maxBytesTaken()) {
            refuseLarge(new RPCXException(
                    RPCXException.Code.TOO_LARGE,
                    "an item of " + encoded.readableBytes() + " bytes (expected: at most " + connection.maxBytesTaken()
                            + ")"));
            return;
        }
        Message message = new Message(Wire.ITEM, encoded, ITEM_BYTES + HeapArray.heapBytes(encoded));
        boolean isFirst;
        RPCXException refused;
        synchronized (this) {
            if (over || complete || failing) {
                return;
            }
            if (asked == 0) {
                refused = new RPCXException(
                        RPCXException.Code.HANDLER_FAILED,
                        "the publisher makes items that nobody has asked for (expected: what is requested)");
            } else if (!bytes.add(message.cost)) {
                refused = new RPCXException(
                        RPCXException.Code.OVERLOADED,
                        "an item could not be kept: too many bytes wait to be read on this connection or server");
            } else {
                asked--;
                // if items become smaller, the expected charge falls slowly
                itemCost = Math.max(message.cost, itemCost / 2);
                waitingCost += message.cost;
                messages.add(message);
                refused = null;
            }
            isFirst = refused == null && !queued;
            queued |= isFirst;
        }
        if (refused != null) {
            cutOff(refused);
            return;
        }
        if (isFirst) {
            connection.send(this);
        }
        ask();
    }

    /** Cancels the publisher, and reports why the stream fails. */
    private void cutOff(Throwable why) {
        try {
            cancelPublisher(why);
        } finally {
            failed.onFailure(why);
        }
    }

    /** Cancels the publisher, and reports that one of its items is larger than a message may be. */
    private void refuseLarge(RPCXException why) {
        try {
            cancelPublisher(why);
        } finally {
            failed.tooLarge(why);
        }
    }

    private void cancelPublisher(Throwable why) {
        Flow.Subscription to;
        synchronized (this) {
            to = complete ? null : subscription;
            subscription = null;
            failing = true;
        }
        if (to != null) {
            WatchedStream.ended(to, why);
            signals.execute(to::cancel);
        }
    }

    @Override
    public void onError(Throwable thrown) {
        if (!isFailing()) {
            failed.onFailure(thrown);
        }
    }

    @Override
    public void onComplete() {
        if (!isFailing()) {
            addLast(lastHead, Unpooled.EMPTY_BUFFER);
        }
    }

    private synchronized boolean isFailing() {
        return failing;
    }

    /**
     * Returns what is sent in place of a last message that cannot be charged. An error that is not small already loses
     * its text, since the text may be as long as the request. Any other message is returned unchanged.
     */
    private static ByteBuf withoutText(int messageHead, ByteBuf message) {
        if (messageHead != Wire.ERROR || message.capacity() <= SMALL_END_BYTES) {
            return message;
        }
        RPCXException error = WireError.read(message);
        ByteBuf small = Unpooled.buffer(SMALL_END_BYTES);
        WireError.write(small, new RPCXException(error.code(), "", error.executed(), null));
        return small;
    }

    /**
     * Adds the message that ends the stream, to be sent after all items. Does nothing if the stream has such a message
     * already, or is over.
     */
    public void addLast(int messageHead, ByteBuf message) {
        boolean isFirst;
        synchronized (this) {
            if (over || complete) {
                return;
            }
            complete = true;
            ByteBuf last = message;
            long cost = ITEM_BYTES + HeapArray.heapBytes(last);
            // the last message is never refused, since nothing else would end the stream; if it cannot be charged, it
            // is queued in a small form
            if (!bytes.add(cost)) {
                // only an error may drop waiting items: any other end says that all items have been sent
                if (messageHead == Wire.ERROR) {
                    dropWaiting();
                }
                if (messageHead != Wire.ERROR || !bytes.add(cost)) {
                    cost = 0;
                    last = withoutText(messageHead, message);
                }
            }
            waitingCost += cost;
            messages.add(new Message(messageHead, last, cost));
            isFirst = !queued;
            queued = true;
        }
        if (isFirst) {
            connection.send(this);
        }
    }
}
