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
 * Sends the items of the outgoing stream of one call. Asks the publisher for no more items than the peer has given
 * credit for, nor for more at one time than fill {@link #WINDOW_BYTES}. Items are charged until they have been sent.
 *
 * <p>This object is in the outbox for all messages of the call, which are sent one after the other: parts of different
 * messages must not mix. {@link #signals} requests items from the publisher and cancels it: at a server where the
 * method's handlers run, at a client on the thread that finds that this is due, or on the event loop.
 */
public final class StreamSender extends Outbound implements Flow.Subscriber<Object> {
    /**
     * Max bytes of items that wait for the socket. The publisher is asked for more only while at most half of them are
     * charged: as much as one write takes, so that the socket stays busy.
     */
    public static final int WINDOW_BYTES = 64 * 1024;

    /** Takes the failure of a stream. Thread-safe: any thread may call this. */
    @FunctionalInterface
    public interface Failed {
        /**
         * Called if the publisher has failed or broken a rule, if the codec has thrown, or if there was no room for an
         * item.
         */
        void onFailure(Throwable thrown);

        /** Called if an item is larger than a message may be, at this side or at the peer. */
        default void tooLarge(RPCXException why) {
            onFailure(why);
        }
    }

    /** Max capacity in bytes of a last message that is sent without a charge. An error without a text takes less. */
    private static final int SMALL_END_BYTES = 64;

    /** Number of bytes that a message is charged for in addition to its own bytes. */
    private static final int ITEM_BYTES = 128;

    /**
     * Message that is not in frames yet. {@code cost} is the number of bytes charged for it: 0 for a last message for
     * which there was no room.
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
     * Charge for all messages: always the sum of {@link #waitingCost} and {@link #leavingCost}. It is set to the sum or
     * released entirely, so that nothing is released twice.
     */
    private final Charge bytes;

    /** Number of bytes of {@link #bytes} that are charged for {@link #messages}. */
    private long waitingCost;

    /** Number of bytes of {@link #bytes} that are charged for {@link #body} while it is being sent. */
    private long leavingCost;

    private final Charge stream;
    private Flow.@Nullable Subscription subscription;

    /** Number of items for which the peer has given credit and the publisher has not been asked. */
    private long credit;

    /** Number of items for which the publisher has been asked and which it has not made. */
    private long asked;

    /**
     * Expected charge of the next item in bytes: that of the latest item, but at least half of the previous
     * expectation.
     */
    private long itemCost = WINDOW_BYTES;

    /** Whether this object is in the outbox, or is about to be added to it. */
    private boolean queued;

    /**
     * Whether the last message has been added or the stream has been cancelled. The publisher's signals no longer count
     * then.
     */
    private boolean complete;

    /**
     * Whether the stream has failed on this side. Signals that the publisher gives after that, for example within its
     * own cancel, are ignored.
     */
    private boolean failing;

    /** Whether the stream is over: nothing of it is sent any more. */
    private boolean over;

    /** Whether the publisher has been subscribed to, or is about to be. */
    private boolean hasPublisher;

    /** Task that runs on the event loop when the first credit arrives; null if there is none, and once it has run. */
    private @Nullable Runnable onFirstCredit;

    /**
     * Creates the sender of the outgoing stream of one call.
     *
     * @param lastHead type of the frame that says that no more items come
     * @param failed takes the reason why no more items come; it may add an error as the last message
     * @param onLastSent runs on the event loop when the last message has been sent
     * @param executor runs the subscription to the publisher, its requests and its cancel; null to run each on the
     *     thread that finds that it is due, or on the event loop after many in a row
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
     * Subscribes to the publisher in a task of {@code signals}. Called at most once. The stream is counted immediately,
     * since the task may have to wait long for a thread.
     *
     * @param begins runs when the publisher is about to be subscribed to, or when it will certainly not be
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

    /** Subscribes to the publisher on the calling thread, which is the thread that sends the call. */
    public void subscribeHere(Flow.Publisher<Object> publisher) {
        if (hold(publisher)) {
            subscribe(publisher);
        }
    }

    /**
     * Charges for the stream.
     *
     * @return false if the stream is over, or fails now because there are too many streams
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
     * Returns whether the publisher has been or is about to be subscribed to. Final once the stream has been cancelled.
     */
    public synchronized boolean hasPublisher() {
        return hasPublisher;
    }

    /** Sets the task that runs when the first credit arrives. Called before anything of the call is sent. */
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
     * Asks the publisher for as many items as there is credit and room for, if all items that it was asked for before
     * have come. The caller must not hold the lock, since the publisher may make items before its {@code request}
     * returns.
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
     * Releases the charge of the stream once no signal runs or waits: the publisher may keep its thread for a long
     * time.
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

    /** Cancels the publisher, and reports {@code why} as the reason why its stream fails. */
    private void cutOff(Throwable why) {
        try {
            cancelPublisher(why);
        } finally {
            failed.onFailure(why);
        }
    }

    /** Cancels the publisher, and reports that its item is too large. */
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
     * Returns the form of a last message that cannot be charged: an error without its text unless it is small already,
     * any other message unchanged. The text may be as long as what the handler was given.
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

    /** Queues the last message behind the items. Ignored if there already is a last message. */
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
