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
 * Sends the outgoing items of one call. The publisher is asked for no more items than the peer has given credit for,
 * and for no more at a time than fill {@link #WINDOW_BYTES}: a peer that gives credit and reads nothing stops the
 * publisher. Items that have been made and have not left are charged.
 *
 * <p>The messages of the call leave one after the other, since large ones go in parts: this object is the one link in
 * the outbox for all of them. The publisher's subscription is asked and cancelled in {@link #signals}: at a server
 * where the method's handlers run, at a client on the thread that finds out that this is due, or on the event loop.
 */
public final class StreamSender extends Outbound implements Flow.Subscriber<Object> {
    /**
     * Bytes of items that may wait for the socket. The publisher is asked for more while no more than half of them are
     * held: one write's worth keeps the socket busy.
     */
    public static final int WINDOW_BYTES = 64 * 1024;

    /** Takes the failure of a stream. Any thread. */
    @FunctionalInterface
    public interface Failed {
        /** The publisher has failed or broken a rule, the codec has thrown, or an item found no room. */
        void onFailure(Throwable thrown);

        /** An item is larger than a message may be, here or at the peer. */
        default void tooLarge(RPCXException why) {
            onFailure(why);
        }
    }

    /**
     * Largest capacity in bytes of a last message that is not charged. The code and the {@code executed} of an error
     * take less.
     */
    private static final int SMALL_END_BYTES = 64;

    /** Bytes that a message is charged for beside its own. */
    private static final int ITEM_BYTES = 128;

    /**
     * Message that is not yet cut into frames, with the bytes that it is charged for: 0 for a last message that found
     * no room.
     */
    private record Message(int head, ByteBuf body, long cost) {}

    private final WireConnection connection;
    private final Codec<Object> codec;
    private final int lastHead;
    private final Failed failed;
    private final Runnable onLastSent;
    private final SerialExecutor signals;

    // guarded by this
    private final Queue<Message> messages = new ArrayDeque<>();

    /**
     * Charge for all messages, always the sum of {@link #waitingCost} and {@link #leavingCost}. It is set to their sum,
     * so no part can be released twice.
     */
    private final Charge bytes;

    /** Part of {@link #bytes} that is charged for {@link #messages}. */
    private long waitingCost;

    /** Part of {@link #bytes} that is charged for {@link #body} while it leaves. */
    private long leavingCost;

    private final Charge stream;
    private Flow.@Nullable Subscription subscription;

    /** Items that the peer wants and the publisher has not been asked for. */
    private long credit;

    /** Items that the publisher has been asked for and has not made. */
    private long asked;

    /**
     * Charge in bytes that is expected of the next item: that of the latest item, but at least half of what was
     * expected before.
     */
    private long itemCost = WINDOW_BYTES;

    /** This object is in the outbox, or about to be. */
    private boolean queued;

    /** The last message has been added: the publisher has nothing more to say. */
    private boolean complete;

    /**
     * The stream has failed on this side: signals that the publisher still gives, such as within its own cancel, are
     * ignored.
     */
    private boolean failing;

    /** Nothing leaves any more. */
    private boolean over;

    /** The publisher has been subscribed to, or is about to be. */
    private boolean hasPublisher;

    /** Task that the first credit runs, on the event loop; null if there is none, and once it has been run. */
    private @Nullable Runnable onFirstCredit;

    /**
     * @param lastHead type of the frame that says that no more items come
     * @param failed takes the reason why no more items come; it may add an error as the last message
     * @param onLastSent run on the event loop when the last message has left
     * @param place runs the subscription to the publisher, the requests to it and its cancel; null for the thread that
     *     finds out that one of these is due, or for the event loop where that happens many times in a row
     */
    public StreamSender(
            WireConnection connection,
            int callId,
            Codec<Object> codec,
            int lastHead,
            Failed failed,
            Runnable onLastSent,
            @Nullable Executor place) {
        this.connection = connection;
        this.id = callId;
        this.codec = codec;
        this.lastHead = lastHead;
        this.failed = failed;
        this.onLastSent = onLastSent;
        this.signals = new SerialExecutor(place, place == null ? connection.loop() : place);
        this.bytes = connection.account.charge(Resource.ITEM_BYTES_OUT);
        this.stream = connection.account.charge(Resource.STREAMS);
    }

    // ---- any thread

    /**
     * Subscribes to the publisher in {@code signals}, once. The stream is counted from here on, before the publisher
     * has a thread, since the publisher may keep that thread for long before it gives a signal.
     *
     * @param begins run when the publisher is about to be subscribed to, or will not be
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

    /** Subscribes to the publisher on this thread, which is the one that sends the call. */
    public void subscribeHere(Flow.Publisher<Object> publisher) {
        if (hold(publisher)) {
            subscribe(publisher);
        }
    }

    /**
     * Charges for the stream.
     *
     * @return false if the stream is over, or fails since there are too many streams
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
            // the publisher may write to a log and block, and this thread may be the event loop
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
            // nobody wants the publisher's items, and the stream is not counted any more
            WatchedStream.ended(publisher, null);
            return;
        }
        try {
            publisher.subscribe(this);
        } catch (Throwable t) {
            onError(t);
        }
    }

    /** Says whether the publisher has been subscribed to. The answer is final once this stream has been cancelled. */
    public synchronized boolean hasPublisher() {
        return hasPublisher;
    }

    /** Sets the task that the first credit runs. Called before anything of the call is sent. */
    public void onFirstCredit(Runnable told) {
        onFirstCredit = told;
    }

    public void onCredit(long items) {
        Runnable told = onFirstCredit;
        if (told != null) {
            onFirstCredit = null;
            told.run();
        }
        synchronized (this) {
            credit = Math.min(Long.MAX_VALUE - items, credit) + items;
        }
        ask();
    }

    /**
     * Asks the publisher for as many items as there is credit and room for, once all items that it was asked for have
     * come. The caller does not hold the lock, since the publisher may answer at once.
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
                // a publisher that cannot be asked makes nothing more, and would leave its call waiting
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
        // whoever keeps this object, as a publisher may keep its subscribers, keeps nothing of the publisher
        subscription = null;
        dropWaiting();
        leavingCost = 0;
        bytes.release();
    }

    /**
     * Releases the charge of the stream once no signal runs or waits: a publisher that has been asked for more may keep
     * its thread for long.
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
                // this item is charged for its own bytes alone
                shrinkBody();
            }
            HeapArray.grow(body, next.body.readableBytes());
            body.writeBytes(next.body);
        }
        // while the socket is busy the message stays on the heap, behind what the peer has not read yet and behind the
        // messages that wait for the peer to read
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
                // the buffer goes with its charge: while the stream waits for credit it holds no item
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
            codec.write(Objects.requireNonNull(item, "an item is null, which no stream has"), encoded);
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
        Message message = new Message(Wire.ITEM, encoded, ITEM_BYTES + HeapArray.taken(encoded));
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
                        "an item could not be kept: too much waits to be read on this connection or server");
            } else {
                asked--;
                // the expectation falls slowly when the items become smaller
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

    /** Cancels the publisher, and reports why its stream fails. */
    private void cutOff(Throwable why) {
        try {
            cancelPublisher(why);
        } finally {
            failed.onFailure(why);
        }
    }

    /** Cancels the publisher, and reports its item as too large. */
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
     * Returns an error without its text, unless it is small; any other message as it is. The text may quote what the
     * handler was given, and be as long as that.
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

    /** Queues the last message behind the items before it. A second last message is dropped. */
    public void addLast(int messageHead, ByteBuf message) {
        boolean isFirst;
        synchronized (this) {
            if (over || complete) {
                return;
            }
            complete = true;
            ByteBuf last = message;
            long cost = ITEM_BYTES + HeapArray.taken(last);
            // the last message is never refused, as nothing else would end the stream; where it is not charged it is
            // small
            if (!bytes.add(cost)) {
                // a good end says that all items have been sent, so only an error may take the place of items that wait
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
