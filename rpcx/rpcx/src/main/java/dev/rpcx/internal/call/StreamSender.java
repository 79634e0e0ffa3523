package dev.rpcx.internal.call;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.CallbackFailures;
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
 * Sends the items of a publisher as the outgoing stream of one call. The publisher is asked for no more items than the
 * peer has given credit for, and each time only for as many as probably fit into {@link #WINDOW_BYTES}, but at least
 * one. The connection is charged for each item until the item has been sent.
 *
 * <p>This object sends all messages of the stream, one after the other, since parts of different messages must not mix.
 *
 * <p>{@link #signals} calls the methods of the publisher and of its subscription. At a server, {@code signals} calls
 * them on the kind of thread on which the method's handlers run. At a client, it calls them on the event loop, or on a
 * thread that asks for items or cancels the stream. Two methods do not use {@code signals}:
 *
 * <ul>
 *   <li>{@link #subscribeHere} subscribes on the calling thread.
 *   <li>{@link #onSubscribe} cancels a subscription that is refused, on the thread that calls {@code onSubscribe}.
 * </ul>
 */
public final class StreamSender extends Outbound implements Flow.Subscriber<Object> {
    /**
     * Size in bytes of the window for the items that wait for the socket. The publisher is asked only for as many items
     * as probably fit into the window, but at least for one. Items that are larger than expected can exceed the window.
     * The publisher is asked for more items only while at most half of the window is used. The items that still wait
     * then keep the socket busy while the publisher makes the next items.
     */
    public static final int WINDOW_BYTES = 64 * 1024;

    /** Receives the reason why a stream fails. Any thread may call {@code onFailure} and {@code tooLarge}. */
    @FunctionalInterface
    public interface Failed {
        /**
         * Called if no more items can be sent: the publisher has failed or has broken a rule of Reactive Streams, the
         * codec has thrown an exception, or there was no room for the stream or for an item.
         */
        void onFailure(Throwable thrown);

        /**
         * Called if an item is too large: it has more bytes than this side or the peer allows for a message, or a
         * number in it has too many digits or too large a scale, positive or negative.
         */
        default void tooLarge(RPCXException why) {
            onFailure(why);
        }
    }

    /**
     * If the connection cannot be charged for an error, the error keeps its text only if the capacity of the error's
     * buffer is at most this number of bytes. Otherwise the error loses its text, and gets a buffer of this capacity.
     */
    private static final int MAX_SMALL_END_BYTES = 64;

    /**
     * Number of bytes that the connection is charged for each message in addition to the bytes of the message's buffer.
     */
    private static final int ITEM_BYTES = 128;

    /**
     * Message that waits until it is written into frames. {@code head} is the type of the message's first frame, and
     * {@code cost} is the number of bytes charged for the message. The cost is 0 for the message that ends the stream
     * if the connection could not be charged for that message.
     */
    private record WaitingMessage(int head, ByteBuf body, long cost) {}

    private final WireConnection connection;
    private final Codec<Object> codec;
    private final int lastHead;
    private final Failed failed;
    private final Runnable onLastSent;
    private final SerialExecutor signals;

    // the fields from here to hasPublisher are guarded by this object's lock
    private final Queue<WaitingMessage> messages = new ArrayDeque<>();

    /**
     * Charge for the memory of all messages: the sum of {@link #waitingCost} and {@link #sendingCost}. To reduce the
     * charge, this class sets the charge to the new sum, or releases the whole charge. The cost of a single message is
     * never subtracted: it could then be released twice, for example when the stream ends while that message is being
     * sent.
     */
    private final Charge bytes;

    /** Number of bytes that are charged for the messages in {@link #messages}, which wait to be sent. */
    private long waitingCost;

    /** Number of bytes that are charged for the message in {@link #body}, which is being sent. */
    private long sendingCost;

    private final Charge stream;
    private Flow.@Nullable Subscription subscription;

    /** Number of items that the peer has given credit for, and that the publisher has not been asked for yet. */
    private long credit;

    /** Number of items that the publisher has been asked for, and has not made yet. */
    private long asked;

    /**
     * Number of calls of {@link #onNext} that have taken an item, and have neither queued it nor failed. A publisher
     * that follows the rules of Reactive Streams ends its stream only while this number is 0. If it ends the stream at
     * another time, the stream fails, since a normal end would hide that an item is missing.
     */
    private int making;

    /**
     * Expected charge, in bytes, for the publisher's next item. It is the charge for the latest item, but at least half
     * of the previous expected charge. For example, if 8,000 bytes were expected and the latest item was charged 100,
     * then 4,000 are expected for the next item.
     */
    private long itemCost = WINDOW_BYTES;

    /**
     * Whether this object is in the outbox, that is, the connection's queue of messages to send, or is about to be put
     * there. Also true while a message is being sent, until {@link #onSent}.
     */
    private boolean queued;

    /**
     * Whether no more items are taken from the publisher, because the last message of the stream has been added or the
     * stream has been cancelled.
     */
    private boolean complete;

    /** Whether the publisher has ended the stream by {@code onComplete}. Items that it makes later are not sent. */
    private boolean ended;

    /**
     * Whether the stream has failed on this side. A publisher that has not ended the stream itself is cancelled. Later
     * signals of the publisher are ignored, even those that come while its {@code cancel} method runs. So no later
     * {@code onComplete} makes a failed stream look complete.
     */
    private boolean failing;

    /** Whether the stream has ended, so that no message of the stream is sent any more. */
    private boolean over;

    /** Whether this object has subscribed to the publisher, or is about to. */
    private boolean hasPublisher;

    /**
     * Task that runs on the event loop when the peer gives credit for the first time. Null if there is no such task, or
     * if the task has run. The thread that sends the call sets the task before it sends anything. The sending makes the
     * task visible to the event loop. After that, only the event loop uses the field.
     */
    private @Nullable Runnable onFirstCredit;

    /**
     * Creates the sender of the outgoing stream of one call.
     *
     * @param lastHead type of the frame that says to the peer that all items have been sent
     * @param failed receives the reason why no more items can be sent; {@code failed} may call {@link #addLast} to send
     *     an error as the last message
     * @param onLastSent runs on the event loop when the last message has been sent
     * @param executor calls the publisher's methods {@code subscribe} (except in {@link #subscribeHere}),
     *     {@code request} and {@code cancel}. If {@code executor} is null, the thread that asks for items or cancels
     *     the stream calls the method itself. If another thread is calling a method of the publisher at that time, that
     *     other thread calls the method afterwards. After a thread has called many methods in a row, the event loop
     *     calls the rest
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

    // ---- any thread, but onCredit and cancel are called on the event loop

    /**
     * Subscribes to the publisher in a task of {@link #signals}. Called at most once. The stream is counted as one of
     * the connection's streams before the task runs, since the task may wait long for a thread.
     *
     * @param begins runs at the beginning of the task, even if the stream has been cancelled meanwhile and no
     *     subscription follows; runs immediately, without a task, if the stream is over already or is refused
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

    /** Subscribes to the publisher immediately, on the calling thread, which is the thread that sends the call. */
    public void subscribeHere(Flow.Publisher<Object> publisher) {
        if (hold(publisher)) {
            subscribe(publisher);
        }
    }

    /**
     * Counts this stream as one of the connection's streams. If the connection, the peer's address, or the whole server
     * or client already has too many streams, this stream is not counted, and fails.
     *
     * @return false if the stream was over already, or fails now
     */
    private boolean hold(Flow.Publisher<Object> publisher) {
        RPCXException refused;
        synchronized (this) {
            if (!over && stream.add(1)) {
                return true;
            }
            refused = over ? null : StreamErrors.tooMany();
        }
        if (publisher instanceof StreamEndListener listener) {
            // The method listener.ended may block while it writes to a log, and this thread may be the event loop. So
            // the call of the method is handed to the executor in the field signals.
            Interceptor.aside(() -> signals.execute(() -> listener.ended(refused)));
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
            // The stream is over, so this object does not subscribe. The publisher is only notified of the end.
            StreamEndListener.ended(publisher, null);
            return;
        }
        try {
            publisher.subscribe(this);
        } catch (Throwable t) {
            onError(t);
        }
    }

    /**
     * Returns whether this object has subscribed to the publisher, or is about to. The result does not change any more
     * after the stream has been cancelled.
     */
    public synchronized boolean hasPublisher() {
        return hasPublisher;
    }

    /**
     * Sets a task that runs when the peer gives credit for the first time. The task has to be set before anything of
     * the call is sent.
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
     * Asks the publisher for more items. The number is the peer's credit, but at most as many items as probably fit
     * into the free part of {@link #WINDOW_BYTES}, or one if none fits. Does nothing in these cases:
     *
     * <ul>
     *   <li>There is no subscription.
     *   <li>No credit of the peer is left.
     *   <li>The stream is complete or over.
     *   <li>More than half of {@code WINDOW_BYTES} is in use.
     *   <li>The publisher has not yet made all items that it was asked for.
     * </ul>
     *
     * <p>The caller must not hold the lock of this object, since the publisher may make items within its
     * {@code request} method.
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
                // the publisher makes no more items after this failure, and without cutOff the call would wait for more
                // items
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
        // A publisher may keep this object in memory after the stream has ended. Without this line, the object would
        // then keep the publisher in memory too.
        subscription = null;
        dropWaiting();
        sendingCost = 0;
        bytes.release();
    }

    /**
     * Stops counting this stream as one of the connection's streams. If methods of the publisher run or wait to run in
     * {@link #signals}, the stream is counted until they have ended, because they may keep a thread busy.
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
        bytes.set(sendingCost);
    }

    // ---- on the event loop

    @Override
    public boolean beforeSend() {
        synchronized (this) {
            WaitingMessage next = over ? null : messages.poll();
            if (next == null) {
                queued = false;
                return false;
            }
            head = next.head;
            sendingCost = next.cost;
            waitingCost -= next.cost;
            clearBody();
            if (body.capacity() > next.body.capacity()) {
                // the connection is charged only for the item's own bytes, so a buffer that is larger than the item is
                // made small first
                shrinkBody();
            }
            HeapArray.grow(body, next.body.readableBytes());
            body.writeBytes(next.body);
        }
        // while the socket is busy with earlier bytes, this message waits on the heap
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
                // The next line gives up the buffer, because the lines below release the charge for it. A stream that
                // waits for credit therefore holds no item.
                shrinkBody();
            }
            sendingCost = 0;
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

    /**
     * Takes an item. Unless the stream is over, the item is sent or the stream fails. There is one exception: an item
     * that the publisher makes after it has ended the stream is only logged, since the end may have been sent already.
     */
    @Override
    public void onNext(Object item) {
        boolean isTaken;
        boolean isAfterEnd;
        synchronized (this) {
            isTaken = !over && !complete && !failing && !ended;
            isAfterEnd = ended;
            if (isTaken) {
                making++;
            }
        }
        if (isTaken) {
            enqueue(item);
        } else if (isAfterEnd) {
            CallbackFailures.logLateItem();
        }
    }

    private void enqueue(Object item) {
        ByteBuf encoded;
        try {
            encoded = Unpooled.buffer();
            codec.write(
                    Objects.requireNonNull(item, "an item is null (expected: a value, since a stream has no null)"),
                    encoded);
        } catch (CodecException e) {
            if (e.code() == CodecException.Code.TOO_LARGE) {
                refuseLarge(StreamErrors.unsendableItem(e));
            } else {
                cutOff(e);
            }
            return;
        } catch (Throwable t) {
            cutOff(t);
            return;
        }
        if (encoded.readableBytes() > connection.maxBytesTaken()) {
            refuseLarge(StreamErrors.largeItem(encoded.readableBytes(), connection.maxBytesTaken()));
            return;
        }
        WaitingMessage message = new WaitingMessage(Wire.ITEM, encoded, ITEM_BYTES + HeapArray.heapBytes(encoded));
        boolean isFirst;
        RPCXException refused;
        synchronized (this) {
            if (over || complete || failing) {
                return;
            }
            if (asked == 0) {
                refused = StreamErrors.unrequestedItem();
            } else if (!bytes.add(message.cost)) {
                refused = StreamErrors.unkeptItem();
            } else {
                asked--;
                // after a much smaller item, the expected charge for the next item falls only to half
                itemCost = Math.max(message.cost, itemCost / 2);
                waitingCost += message.cost;
                messages.add(message);
                making--;
                refused = null;
            }
            failing |= refused != null;
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

    /** Cancels the publisher, and reports that one of its items is too large: see {@link Failed#tooLarge}. */
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
            StreamEndListener.ended(to, why);
            signals.execute(to::cancel);
        }
    }

    @Override
    public void onError(Throwable thrown) {
        boolean isFirst;
        synchronized (this) {
            isFirst = !failing;
            failing = true;
        }
        if (isFirst) {
            failed.onFailure(thrown);
        }
    }

    /** Ends the stream, unless it has failed. If an item is being made on another thread, the stream fails now. */
    @Override
    public void onComplete() {
        boolean isWithinItem;
        synchronized (this) {
            if (over || complete || failing || ended) {
                return;
            }
            isWithinItem = making > 0;
            if (isWithinItem) {
                failing = true;
            } else {
                ended = true;
            }
        }
        if (isWithinItem) {
            cutOff(StreamErrors.endWithinItem());
        } else {
            addLast(lastHead, Unpooled.EMPTY_BUFFER);
        }
    }

    /**
     * Returns the form in which a last message is sent if it cannot be charged. An error whose buffer is larger than
     * {@link #MAX_SMALL_END_BYTES} loses its text, since the text may have 2,000 characters. Any other message is
     * returned unchanged.
     */
    private static ByteBuf withoutText(int messageHead, ByteBuf message) {
        if (messageHead != Wire.ERROR || message.capacity() <= MAX_SMALL_END_BYTES) {
            return message;
        }
        RPCXException error = WireError.read(message);
        ByteBuf small = Unpooled.buffer(MAX_SMALL_END_BYTES);
        WireError.write(small, StreamErrors.withoutText(error));
        return small;
    }

    /**
     * Adds the message that ends the stream, to be sent after all items. Does nothing if the stream has such a message
     * already, or if the stream is over.
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
            // The last message is never refused, since nothing else would end the stream. If the connection cannot be
            // charged for this message, the message is queued without a charge, and withoutText removes the text of a
            // large error.
            if (!bytes.add(cost)) {
                // An error drops the items that wait, to make room for itself. Any other last message says that all
                // items have been sent, so no item may be dropped for it.
                if (messageHead == Wire.ERROR) {
                    dropWaiting();
                }
                if (messageHead != Wire.ERROR || !bytes.add(cost)) {
                    cost = 0;
                    last = withoutText(messageHead, message);
                }
            }
            waitingCost += cost;
            messages.add(new WaitingMessage(messageHead, last, cost));
            isFirst = !queued;
            queued = true;
        }
        if (isFirst) {
            connection.send(this);
        }
    }
}
