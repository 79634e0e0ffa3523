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
 * Publishes the incoming items of one call to one subscriber. Signals are given one after the other, on the
 * connection's event loop or where the method's handlers run. What the subscriber requests goes to the peer as credit,
 * so no more items wait than were requested.
 */
public final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** Takes the credit that goes to the peer. Any thread. */
    public interface CreditSink {
        void credit(long items);
    }

    /** The way back to the peer. Any thread. */
    public interface Peer extends CreditSink {
        void cancel();

        /** Too many bytes of items wait: the call has to end. Event loop only. */
        default void overflow() {}

        /**
         * Runs a task that gives a signal to a subscriber whose signals are given on the event loop. A server runs it
         * on that loop, at once if this thread is the loop's, and on this thread if the loop has ended. The default
         * runs it at once on this thread.
         */
        default void onLoop(Runnable telling) {
            telling.run();
        }
    }

    /**
     * If more items than this have waited at once, the queue that held them is replaced by a new one when it has become
     * empty.
     */
    private static final int MANY_ITEMS = 256;

    /** Bytes that a waiting item is charged for beside its own. */
    private static final int ITEM_BYTES = 128;

    private final Codec<Object> codec;
    private final Peer peer;

    /** Runs the subscriber's signals; null if they are given on the event loop at once. */
    private final @Nullable SerialExecutor signals;

    /**
     * Charge for the buffer of {@link #parts} and for {@link #items}; null at a client, where the call is charged for
     * what {@link #growth} says. Guarded by {@code this}.
     */
    private final @Nullable Charge bytes;

    /** Charge for the object that an item is decoded into, while the subscriber has that object; null at a client. */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /**
     * Context of the subscriber's call, in which signals are given. It is null if there is none, from the last signal
     * on, and once a cancelled stream has ended, so that whoever keeps the subscription keeps nothing of that call.
     * Guarded by {@code this}.
     */
    private @Nullable TimedContext context;

    /** Items that wait for the subscriber. Guarded by {@code this}. */
    private ArrayDeque<ByteBuf> items = new ArrayDeque<>();

    /** Largest number of items that have waited at once since the queue was last empty. Guarded by {@code this}. */
    private int mostItems;

    /**
     * True while the signal that gives the next item waits or runs: one signal serves all items that wait. Guarded by
     * {@code this}.
     */
    private boolean isGiving;

    /** True while an item has begun to arrive and is not whole, whether or not its bytes are kept. Event loop only. */
    private boolean receiving;

    /** The peer has said that no more items come. Event loop only. */
    private boolean peerEnded;

    // guarded by this

    /**
     * Parts that have arrived of an item for the subscriber; null if none are kept. Each item has a buffer of its own.
     */
    private @Nullable ByteBuf parts;

    private Flow.@Nullable Subscriber<? super Object> subscriber;

    /**
     * Takes the credit for the peer. It is null until {@code open}, after {@code takeBack} until the next {@code open},
     * from the last signal on, and once a cancelled stream has ended.
     */
    private @Nullable CreditSink creditSink;

    /** Items that the subscriber has requested and for which no peer has been given credit. */
    private long demand;

    /** Credit that the peer has and has not used. */
    private long granted;

    /** True once {@code end} has been called: no more items come from the peer. */
    private boolean ended;

    private boolean terminated;

    /**
     * Error with which the stream ends; null for none. It comes from the peer, or from this side, which may fail over
     * an item that came before the peer's good end and waited. Once it is set, the subscriber gets only its last
     * signal. The first error counts.
     */
    private @Nullable Throwable failure;

    /**
     * Creates the receiver of a client. The subscriber's signals are given on the event loop at once, so no item waits,
     * and in the context that is current here.
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
     * @param place runs the subscriber's signals; null if they are given on the event loop at once
     * @param context context of the call that takes the stream
     */
    public StreamReceiver(
            Codec<Object> codec, Peer peer, Account account, @Nullable Executor place, @Nullable TimedContext context) {
        this.context = context;
        this.codec = codec;
        this.peer = peer;
        this.signals = place == null ? null : new SerialExecutor(place);
        this.bytes = account.charge(Resource.ITEM_BYTES_IN);
        this.objects = account.charge(Resource.OBJECT_BYTES);
        this.stream = account.charge(Resource.STREAMS);
    }

    /**
     * Charges for the stream. Called before anything else.
     *
     * @return false if there are too many streams, so this one must not begin
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
     * Gives the subscriber its subscription. No other signal is given until {@code open}, since the subscriber is still
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

    /** Lets credit go to the peer, and signals to the subscriber. */
    public void open(CreditSink to) {
        long credit;
        synchronized (this) {
            creditSink = to;
            credit = demand;
            // an earlier open may have failed after this block: the credit that it granted stays granted
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
     * Takes all credit back, since the call has reached no server and is sent another way: what the subscriber has
     * requested is requested there. Called before anything of the stream has arrived.
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
     * Ends the stream of a subscriber that has broken a rule. The last signal says so (Reactive Streams, rule 3.9), and
     * is given where the subscriber's other signals are given.
     */
    private void refuse(IllegalArgumentException why) {
        boolean endsByPeer;
        breakOff(why);
        synchronized (this) {
            // the cancel below ends a client's call, and with it the stream, on the event loop
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
     * Fails the stream: no item is given to the subscriber from here on, even if the peer's good end waits behind
     * items.
     */
    public synchronized void breakOff(Throwable why) {
        if (!terminated && failure == null) {
            failure = why;
            dropItems();
        }
    }

    /** The caller holds the lock. */
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

    /** As {@code onItem(payload, more, maxBytes)} without a limit: no frame is larger than what a client takes. */
    public void onItem(ByteBuf payload, boolean more) {
        onItem(payload, more, Integer.MAX_VALUE);
    }

    /**
     * Takes an item or its first part, which uses one credit. An item without credit ends the connection, whatever its
     * size.
     *
     * @return false if the payload is larger than allowed
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

    /** Says whether {@code way} is this stream's way back to its peer. */
    public boolean isOf(Peer way) {
        return peer == way;
    }

    /** The peer has no more items. */
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

    /** Bytes that are kept of an item that is not whole yet. */
    public synchronized int partBytes() {
        return parts == null ? 0 : parts.readableBytes();
    }

    public boolean isReceiving() {
        return receiving;
    }

    /** @return false if the item would be larger than allowed */
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
     * @return false if too much is held, and the call has been ended for that
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
     * Returns how many bytes of memory it costs to keep a part of {@code bytes} bytes: 0 if the subscriber takes no
     * more.
     */
    public synchronized long growth(int bytes) {
        if (takesNoMore()) {
            return 0;
        }
        ByteBuf kept = parts;
        return kept == null ? bytes : HeapArray.growth(kept, bytes);
    }

    /**
     * Takes the whole item out and releases its charge. The item is charged again if it has to wait for its subscriber.
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
                bytes.release(HeapArray.taken(dropped));
            }
        }
    }

    private synchronized boolean charge(long amount) {
        return takesNoMore() || bytes == null || bytes.add(amount);
    }

    /** Releases the charge of one item, or what is left of it if the charge has been released meanwhile. */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (items.isEmpty() && (ended || parts == null)) {
                // all is released: the release of an amount gives back whole steps only, so a quiet stream would keep
                // the rest
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
        if (mostItems > MANY_ITEMS) {
            items = new ArrayDeque<>();
        } else {
            items.clear();
        }
        mostItems = 0;
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
                // the item is copied, since the buffer that it was read into is used again
                items.add(Unpooled.wrappedBuffer(ByteBufUtil.getBytes(item)));
                mostItems = Math.max(mostItems, items.size());
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
        return HeapArray.taken(item.readableBytes()) + ITEM_BYTES;
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
     * Gives the next item, where the subscriber's signals run. The charge of an item is released when the subscriber
     * has dealt with the item.
     */
    private void giveNext(SerialExecutor here) {
        while (!giveOne()) {
            try {
                here.execute(() -> giveNext(here));
                return;
            } catch (Throwable noMemory) {
                // the next item is given by this thread at once, since nothing else would give it
            }
        }
        // a signal of the end that ran while items waited did nothing
        tellEnd();
    }

    /** @return whether the item was the last that waited */
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
            // an empty body is read as null where its type has no other value for that, such as UUID
            return Objects.requireNonNull(value, "nothing, and a stream has no null");
        } catch (Throwable e) {
            throw new RPCXException(
                    ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                    "an item cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        }
    }

    /**
     * Ends the stream: its last signal is given, behind the items that wait if the end is a good one. Any thread. Only
     * the first call counts.
     *
     * @param error null for a good end
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
     * Releases the charge of the stream once no signal runs or waits: a subscriber that was given an item may keep its
     * thread for long.
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
                // the subscriber has cancelled, or has had its last signal: whoever keeps the subscription keeps
                // nothing of the call's connection
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
            // the stream is over in any case, and the thread goes on with its other work
            CallbackFailures.log(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
        }
    }
}
