package dev.rpcx.internal.call;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * Publishes the incoming items of one call to one subscriber. The subscriber gets its signals one after the other, on
 * the connection's event loop or on the threads that run the method's handlers. What the subscriber requests is given
 * to the peer as credit, so no more items wait than the subscriber has requested.
 */
public final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** Takes the credit that is sent to the peer. Thread-safe: any thread may call this. */
    public interface CreditSink {
        void credit(long items);
    }

    /** Acts on the peer of this stream. Thread-safe: any thread may call this, except where a method says otherwise. */
    public interface Peer extends CreditSink {
        void cancel();

        /** Called when too many bytes of items wait. The implementation has to end the call. Event loop only. */
        default void overflow() {}

        /**
         * Runs a task that gives a signal to a subscriber whose signals are given on the event loop. A server runs the
         * task on that loop, immediately if the calling thread is the loop. If the loop has ended, it runs the task on
         * the calling thread. The default implementation runs the task immediately on the calling thread.
         */
        default void onLoop(Runnable telling) {
            telling.run();
        }
    }

    /**
     * Largest number of items that may have waited at the same time in a queue that is kept. A queue that has held more
     * is replaced by a new one when it has become empty.
     */
    private static final int MANY_ITEMS = 256;

    /** Number of bytes that a waiting item is charged for in addition to its own bytes. */
    private static final int ITEM_BYTES = 128;

    private final Codec<Object> codec;
    private final Peer peer;

    /** Runs the subscriber's signals; null if each signal is given immediately, on the event loop. */
    private final @Nullable SerialExecutor signals;

    /**
     * Charge for the buffer of {@link #parts} and for {@link #items}. Null at a client, where the call is charged for
     * what {@link #growth} returns. Guarded by {@code this}.
     */
    private final @Nullable Charge bytes;

    /**
     * Charge for the object into which an item is decoded, for as long as the subscriber's {@code onNext} runs with
     * that object; null at a client.
     */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /**
     * Context of the subscriber's call, in which signals are given. It is null if the call has no context. It also
     * becomes null with the last signal, or when a cancelled stream has ended, so that code that keeps the subscription
     * keeps nothing of the call in memory. Guarded by {@code this}.
     */
    private @Nullable TimedContext context;

    /** Items that wait for the subscriber. Guarded by {@code this}. */
    private ArrayDeque<ByteBuf> items = new ArrayDeque<>();

    /**
     * Largest number of items that have waited at the same time since the queue was last empty. Guarded by
     * {@code this}.
     */
    private int peakItems;

    /**
     * True while items wait and the task that gives them waits or runs. The task gives one item, and then queues itself
     * again if further items wait. Guarded by {@code this}.
     */
    private boolean isGiving;

    /**
     * True while an item has begun to arrive and parts of it are missing, whether its bytes are kept or not. Event loop
     * only.
     */
    private boolean receiving;

    /** Whether the peer has said that no more items come. Event loop only. */
    private boolean peerEnded;

    // the fields from here on are guarded by this object's lock

    /**
     * Parts that have arrived of an incomplete item for the subscriber; null if none are kept. Each item has a separate
     * buffer.
     */
    private @Nullable ByteBuf parts;

    private Flow.@Nullable Subscriber<? super Object> subscriber;

    /**
     * Takes the credit for the peer. It is null until {@code open}, from {@code takeBack} until the next {@code open},
     * from the last signal on, and once a cancelled stream has ended.
     */
    private @Nullable CreditSink creditSink;

    /** Number of items that the subscriber has requested and for which no peer has been given credit. */
    private long demand;

    /** Number of items that the peer may still send: the credit that it has been given and has not used. */
    private long granted;

    /** True once {@code end} has been called: no more items come from the peer. */
    private boolean ended;

    private boolean terminated;

    /**
     * Error with which the stream ends; null for none. It comes either from the peer or from this side. For example,
     * this side may fail to read an item that was still waiting when the peer ended the stream without an error. Once
     * there is an error, the subscriber gets only its last signal. The first error counts.
     */
    private @Nullable Throwable failure;

    /**
     * Creates the receiver of a client. Each of the subscriber's signals is given immediately, on the event loop, so no
     * item waits. Signals are given in the context that is current on the calling thread.
     */
    public StreamReceiver(Codec<Object> codec, Peer peer) {
        this.context = CurrentCall.get();
        this.codec = codec;
        this.peer = peer;
        this.signals = null;
        this.bytes = null;
        this.objects = null;
        this.stream = null;
    }

    /**
     * Creates the receiver of a server.
     *
     * @param executor runs the subscriber's signals; null if each signal is given immediately, on the event loop
     * @param context context of the call that takes the stream
     */
    public StreamReceiver(
            Codec<Object> codec,
            Peer peer,
            Account account,
            @Nullable Executor executor,
            @Nullable TimedContext context) {
        this.context = context;
        this.codec = codec;
        this.peer = peer;
        this.signals = executor == null ? null : new SerialExecutor(executor);
        this.bytes = account.charge(Resource.ITEM_BYTES_IN);
        this.objects = account.charge(Resource.OBJECT_BYTES);
        this.stream = account.charge(Resource.STREAMS);
    }

    /**
     * Charges for the stream. Called before any other method.
     *
     * @return false if there are too many streams, so that this one must not begin
     */
    public boolean hold() {
        return stream == null || stream.add(1);
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> given) {
        begin(given);
        open();
    }

    /**
     * Gives the subscriber its subscription. The subscriber gets no other signal until {@code open}, since it is still
     * busy with this one.
     */
    public void begin(Flow.Subscriber<? super Object> given) {
        synchronized (this) {
            if (subscriber != null) {
                throw new IllegalStateException("a stream of a call has one subscriber (expected: no second)");
            }
            subscriber = given;
        }
        given.onSubscribe(this);
    }

    public void open() {
        open(peer);
    }

    /** From here on, credit is sent to the peer by way of {@code to}, and the subscriber gets its signals. */
    public void open(CreditSink to) {
        long credit;
        synchronized (this) {
            creditSink = to;
            credit = demand;
            // an earlier call of this method may have failed after this block: the credit that it has added here
            // remains granted
            granted = Streams.sum(granted, credit);
            demand = 0;
        }
        if (credit > 0) {
            to.credit(credit);
        }
        if (signals == null) {
            peer.onLoop(this::tellEnd);
        } else {
            signals.execute(this::tellEnd);
        }
    }

    /**
     * Takes all credit back. Called if the call has not arrived at any server, and is therefore sent once more on
     * another connection. The items that the subscriber has requested are then requested on that connection. Nothing of
     * the stream has arrived before this call.
     */
    public synchronized void takeBack() {
        creditSink = null;
        demand = Streams.sum(demand, granted);
        granted = 0;
    }

    @Override
    public void request(long items) {
        if (items <= 0) {
            refuse(new IllegalArgumentException("request of " + items + " items (expected: > 0)"));
            return;
        }
        CreditSink to;
        synchronized (this) {
            to = creditSink;
            if (to == null) {
                demand = Streams.sum(demand, items);
                return;
            }
            granted = Streams.sum(granted, items);
        }
        to.credit(items);
    }

    /**
     * Ends the stream of a subscriber that has broken a rule. The subscriber's last signal is an error that says so
     * (Reactive Streams, rule 3.9). This signal is given where the subscriber's other signals are given.
     */
    private void refuse(IllegalArgumentException why) {
        boolean endsByPeer;
        breakOff(why);
        synchronized (this) {
            // at a client whose stream is open, the cancel below ends the call, and with it the stream, on the event
            // loop
            endsByPeer = creditSink != null && signals == null && bytes == null;
        }
        if (!endsByPeer) {
            if (signals == null) {
                peer.onLoop(() -> end(why));
            } else {
                end(why);
            }
        }
        peer.cancel();
    }

    /**
     * Makes the stream fail: no item is given to the subscriber from here on. This also holds if the peer has ended the
     * stream without an error and that end waits behind items.
     */
    public synchronized void breakOff(Throwable why) {
        if (!terminated && failure == null) {
            failure = why;
            dropItems();
        }
    }

    /** Whether the subscriber takes no more items. The caller holds the lock. */
    private boolean takesNoMore() {
        return ended || terminated || failure != null;
    }

    @Override
    public void cancel() {
        synchronized (this) {
            terminated = true;
            dropItems();
        }
        peer.cancel();
    }

    // ---- on the event loop

    /**
     * Takes an item, or its first part, as {@code onItem(payload, more, maxBytes)} does, but without a limit. A client
     * needs no limit here, since no frame is larger than the largest item that a client takes.
     */
    public void onItem(ByteBuf payload, boolean more) {
        onItem(payload, more, Integer.MAX_VALUE);
    }

    /**
     * Takes an item, or its first part if {@code more} parts follow. This uses one credit. An item without credit ends
     * the connection, whatever its size.
     *
     * @return false if the payload has more than {@code maxBytes} bytes
     */
    public boolean onItem(ByteBuf payload, boolean more, int maxBytes) {
        refuseAfterEnd("an item");
        synchronized (this) {
            if (granted == 0) {
                throw new WireFault("an item without credit");
            }
            granted--;
        }
        if (payload.readableBytes() > maxBytes) {
            return false;
        }
        if (more) {
            receiving = true;
            addPart(payload);
        } else {
            deliver(payload);
        }
        return true;
    }

    /** Says whether {@code way} is the {@link Peer} of this stream. */
    public boolean isOf(Peer way) {
        return peer == way;
    }

    /** Called when the peer has said that it has no more items. */
    public void onEnd() {
        refuseAfterEnd("an end");
        peerEnded = true;
        end(null);
    }

    private void refuseAfterEnd(String what) {
        if (receiving) {
            throw new WireFault(what + " within an item (expected: its last part first)");
        }
        if (peerEnded) {
            throw new WireFault(what + " after the end of the stream");
        }
    }

    /** Returns the number of bytes that are kept of an incomplete item. */
    public synchronized int partBytes() {
        return parts == null ? 0 : parts.readableBytes();
    }

    public boolean isReceiving() {
        return receiving;
    }

    /**
     * Takes a further part of an item. If it is the last part, the item is given to the subscriber.
     *
     * @return false if the item would have more than {@code maxBytes} bytes
     */
    public boolean onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (partBytes() + payload.readableBytes() > maxBytes) {
            return false;
        }
        if (!addPart(payload)) {
            return true;
        }
        if (!more) {
            receiving = false;
            ByteBuf whole = takeParts();
            if (whole != null) {
                deliver(whole);
            }
        }
        return true;
    }

    /**
     * Keeps a part, unless the subscriber takes no more items.
     *
     * @return false if there is no room for the part; the call has been ended in this case
     */
    private boolean addPart(ByteBuf payload) {
        synchronized (this) {
            if (takesNoMore()) {
                return true;
            }
            if (charge(growth(payload.readableBytes()))) {
                ByteBuf kept = parts;
                if (kept == null) {
                    kept = Unpooled.buffer(payload.readableBytes());
                    parts = kept;
                }
                HeapArray.grow(kept, payload.readableBytes());
                kept.writeBytes(payload);
                return true;
            }
        }
        peer.overflow();
        return false;
    }

    /**
     * Returns how many more bytes of memory are needed to keep a part of {@code bytes} bytes. Returns 0 if the
     * subscriber takes no more items, since the part is not kept then.
     */
    public synchronized long growth(int bytes) {
        if (takesNoMore()) {
            return 0;
        }
        ByteBuf kept = parts;
        return kept == null ? bytes : HeapArray.growth(kept, bytes);
    }

    /**
     * Takes the completed item out of {@link #parts}, and releases its charge. The item is charged again if it has to
     * wait for its subscriber. Returns null if no parts have been kept.
     */
    private synchronized @Nullable ByteBuf takeParts() {
        ByteBuf whole = parts;
        dropParts();
        return whole;
    }

    /** Drops the parts and releases their charge. The caller holds the lock. */
    private void dropParts() {
        ByteBuf dropped = parts;
        if (dropped != null) {
            parts = null;
            if (bytes != null) {
                bytes.release(HeapArray.heapBytes(dropped));
            }
        }
    }

    private synchronized boolean charge(long amount) {
        return takesNoMore() || bytes == null || bytes.add(amount);
    }

    /**
     * Releases the charge of one item. If charges have been released meanwhile, releases only as much as is still
     * charged.
     */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (items.isEmpty() && (ended || parts == null)) {
                // No item or part is kept now, so the entire charge is released. To release only this amount would give
                // back whole steps of the charge, and a remainder would stay charged for as long as the stream is
                // quiet.
                bytes.release();
            } else {
                bytes.release(Math.min(amount, bytes.held()));
            }
        }
    }

    /**
     * Drops all items and parts that have arrived and have not been given to the subscriber, and releases their charge.
     */
    private synchronized void dropItems() {
        forgetItems();
        parts = null;
        if (bytes != null) {
            bytes.release();
        }
    }

    /**
     * Empties the queue of items, and replaces it by a new one if many have waited in it. The caller holds the lock.
     */
    private void forgetItems() {
        if (peakItems > MANY_ITEMS) {
            items = new ArrayDeque<>();
        } else {
            items.clear();
        }
        peakItems = 0;
    }

    private void deliver(ByteBuf item) {
        SerialExecutor elsewhere = signals;
        if (elsewhere == null) {
            emit(item);
            return;
        }
        boolean fits;
        boolean isFirst = false;
        synchronized (this) {
            if (takesNoMore()) {
                return;
            }
            fits = charge(cost(item));
            if (fits) {
                // the item is copied, since the buffer into which it was read is used again
                items.add(Unpooled.wrappedBuffer(ByteBufUtil.getBytes(item)));
                peakItems = Math.max(peakItems, items.size());
                isFirst = !isGiving;
                isGiving = true;
            }
        }
        if (isFirst) {
            giveLater(elsewhere);
        } else if (!fits) {
            peer.overflow();
        }
    }

    private static long cost(ByteBuf item) {
        return HeapArray.heapBytes(item.readableBytes()) + ITEM_BYTES;
    }

    private void giveLater(SerialExecutor elsewhere) {
        try {
            elsewhere.execute(() -> giveNext(elsewhere));
        } catch (Throwable noThread) {
            synchronized (this) {
                isGiving = false;
            }
            throw noThread;
        }
    }

    /**
     * Gives the next item to the subscriber. Runs where the subscriber's signals run. The charge of an item is released
     * when the subscriber has dealt with the item.
     */
    private void giveNext(SerialExecutor here) {
        while (!giveOne()) {
            try {
                here.execute(() -> giveNext(here));
                return;
            } catch (Throwable noMemory) {
                // no task could be handed over, so this thread also gives the next item: nothing else would give it
            }
        }
        // if the stream ended while items waited, the subscriber has not been notified of the end yet: this call does
        // that now
        tellEnd();
    }

    /** Gives one waiting item to the subscriber. Returns whether it was the last item that waited. */
    private boolean giveOne() {
        ByteBuf item;
        boolean isLast;
        synchronized (this) {
            item = items.poll();
            isLast = items.isEmpty();
            if (isLast) {
                isGiving = false;
                forgetItems();
            }
        }
        if (item != null) {
            long cost = cost(item);
            emit(item);
            discharge(cost);
        }
        return isLast;
    }

    private void emit(ByteBuf item) {
        Flow.Subscriber<? super Object> to;
        TimedContext own;
        synchronized (this) {
            to = terminated || failure != null ? null : subscriber;
            own = context;
        }
        if (to == null) {
            return;
        }
        TimedContext before = CurrentCall.swap(own);
        try {
            to.onNext(read(item));
        } catch (Throwable e) {
            breakOff(e);
            peer.cancel();
            end(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
            if (objects != null) {
                objects.release();
            }
        }
    }

    private Object read(ByteBuf item) {
        try {
            Object value = objects == null ? codec.read(item) : codec.read(item, objects);
            // the codec reads an empty body as null if the type, such as UUID, has no other value for an empty body
            return Objects.requireNonNull(value, "it is null (expected: a value, since a stream has no null)");
        } catch (Throwable e) {
            throw new RPCXException(
                    ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                    "an item cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        }
    }

    /**
     * Ends the stream: the subscriber gets its last signal. Without an error, that signal comes after the items that
     * wait. Only the first call counts. Thread-safe: any thread may call this.
     *
     * @param error reason why the stream fails; null if it ends without an error
     */
    public void end(@Nullable Throwable error) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            if (failure == null) {
                failure = error;
            }
            if (failure != null || items.isEmpty()) {
                dropItems();
            } else {
                dropParts();
            }
        }
        SerialExecutor elsewhere = signals;
        try {
            if (elsewhere == null) {
                tellEnd();
            } else {
                elsewhere.execute(this::tellEnd);
            }
        } finally {
            releaseStreamCharge();
        }
    }

    /**
     * Releases the charge of the stream once no signal runs or waits. The charge remains until then because a
     * subscriber that was given an item may keep its thread for a long time.
     */
    private void releaseStreamCharge() {
        SerialExecutor elsewhere = signals;
        Charge counted = stream;
        if (counted == null) {
            return;
        }
        Runnable release = () -> {
            synchronized (this) {
                counted.release();
            }
        };
        if (elsewhere == null) {
            release.run();
        } else {
            elsewhere.atEnd(release);
        }
    }

    private void tellEnd() {
        Flow.Subscriber<? super Object> to;
        TimedContext own;
        synchronized (this) {
            to = subscriber;
            if (ended && terminated) {
                // the subscriber has cancelled, or has had its last signal: code that keeps the subscription must not
                // keep the call's connection in memory
                creditSink = null;
                context = null;
                return;
            }
            // while items wait, the last signal comes behind them: giveNext calls this method again after the last item
            if (!ended || creditSink == null || to == null || !items.isEmpty()) {
                return;
            }
            terminated = true;
            creditSink = null;
            own = context;
            context = null;
        }
        TimedContext before = CurrentCall.swap(own);
        try {
            if (failure == null) {
                to.onComplete();
            } else {
                to.onError(failure);
            }
        } catch (Throwable e) {
            // the exception is only logged: the stream is over in any case, and this thread still has other work to do
            CallbackFailures.log(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
        }
    }
}
