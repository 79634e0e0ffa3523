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
 * Publishes the incoming items of one call to one subscriber. The signals come one after the other, on the connection's
 * event loop or on the threads of the method's handlers. The subscriber's requests are sent to the peer as credit, so
 * no more items wait than the subscriber has requested.
 */
public final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** Takes the credit that is sent to the peer. Thread-safe: any thread may call this. */
    public interface CreditSink {
        void credit(long items);
    }

    /** Acts on the peer of this stream. Thread-safe, except where a method says otherwise. */
    public interface Peer extends CreditSink {
        void cancel();

        /** Called when too many bytes of items wait. Has to end the call. Event loop only. */
        default void overflow() {}

        /**
         * Runs a task that gives a signal to a subscriber whose signals are given on the event loop. At a server, the
         * task runs on that loop, immediately if the calling thread is the loop; if the loop has ended, on the calling
         * thread. By default, the task runs immediately on the calling thread.
         */
        default void onLoop(Runnable telling) {
            telling.run();
        }
    }

    /** A queue in which more items than this have waited is replaced by a new one when it is empty. */
    private static final int MANY_ITEMS = 256;

    /** Number of bytes that a waiting item is charged for in addition to its own bytes. */
    private static final int ITEM_BYTES = 128;

    private final Codec<Object> codec;
    private final Peer peer;

    /** Runs the subscriber's signals; null if each signal is given immediately, on the event loop. */
    private final @Nullable SerialExecutor signals;

    /**
     * Charge for {@link #parts} and {@link #items}. Null at a client, where the call is charged for what
     * {@link #growth} returns. Guarded by {@code this}.
     */
    private final @Nullable Charge bytes;

    /** Charge for a decoded item while the subscriber's {@code onNext} runs; null at a client. */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /**
     * Context of the call, in which signals are given; null if there is none. Set to null with the last signal, or when
     * a cancelled stream has ended, because code may keep the subscription. Guarded by {@code this}.
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
     * True while items wait and the task that gives them waits or runs. The task gives one item, and queues itself
     * again if more items wait. Guarded by {@code this}.
     */
    private boolean isGiving;

    /**
     * True while some parts of an item have arrived, whether they are kept or not, and others are missing. Event loop
     * only.
     */
    private boolean receiving;

    /** Whether the peer has said that no more items come. Event loop only. */
    private boolean peerEnded;

    // the fields from here on are guarded by this object's lock

    /** Parts of an incomplete item that have arrived; null for none. Each item has its own buffer. */
    private @Nullable ByteBuf parts;

    private Flow.@Nullable Subscriber<? super Object> subscriber;

    /**
     * Sends credit to the peer. Null until {@code open}, from {@code takeBack} until the next {@code open}, from the
     * last signal on, and once a cancelled stream has ended.
     */
    private @Nullable CreditSink creditSink;

    /** Number of items that the subscriber has requested and for which no peer has been given credit. */
    private long demand;

    /** Number of items that the peer may still send. */
    private long granted;

    /** True once {@code end} has been called: no more items come from the peer. */
    private boolean ended;

    private boolean terminated;

    /**
     * First error of the stream, from the peer or from this side; null for none. Once it is set, the subscriber gets
     * only its last signal. This side may fail after the peer has ended the stream, for example to read an item that
     * waited.
     */
    private @Nullable Throwable failure;

    /**
     * Creates the receiver of a client. Signals are given immediately, on the event loop, in the context that is
     * current on the calling thread.
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

    /** Gives the subscriber its subscription. Other signals come only after {@code open}. */
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

    /** Starts to send credit through {@code to} and to give signals to the subscriber. */
    public void open(CreditSink to) {
        long credit;
        synchronized (this) {
            creditSink = to;
            credit = demand;
            // the credit stays granted even if this method fails below and is called again
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
     * Takes all credit back. Called if no server has received the call, which is then sent again on another connection.
     * The next {@code open} gives the credit there. Nothing of the stream has arrived yet.
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
     * Ends the stream of a subscriber that has broken a rule. Its last signal is an error that says so (Reactive
     * Streams, rule 3.9).
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
     * Makes the stream fail: no more items are given to the subscriber, even if the peer has ended the stream without
     * an error and items still wait.
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

    /** Takes an item, or its first part, without a limit. At a client, no frame is larger than the largest item. */
    public void onItem(ByteBuf payload, boolean more) {
        onItem(payload, more, Integer.MAX_VALUE);
    }

    /**
     * Takes an item, or its first part if {@code more} parts follow, and uses one credit. An item without credit ends
     * the connection.
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
     * @return false if there was no room for the part, and the call has been ended
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
     * Returns how many more bytes of memory a part of {@code bytes} bytes needs; 0 if the subscriber takes no more
     * items.
     */
    public synchronized long growth(int bytes) {
        if (takesNoMore()) {
            return 0;
        }
        ByteBuf kept = parts;
        return kept == null ? bytes : HeapArray.growth(kept, bytes);
    }

    /**
     * Takes the completed item out of {@link #parts}, and releases its charge. An item that waits for the subscriber is
     * charged again. Returns null if no parts have been kept.
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

    /** Releases the charge of one item, or what is left of it. */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (items.isEmpty() && (ended || parts == null)) {
                // Nothing is kept, so the entire charge is released. A part of a charge is given back only in whole
                // steps, and the rest would stay charged while the stream is quiet.
                bytes.release();
            } else {
                bytes.release(Math.min(amount, bytes.held()));
            }
        }
    }

    /** Drops all items and parts that the subscriber has not been given, and releases their charge. */
    private synchronized void dropItems() {
        forgetItems();
        parts = null;
        if (bytes != null) {
            bytes.release();
        }
    }

    /** Empties the queue of items, and replaces it if many have waited. The caller holds the lock. */
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

    /** Gives the next item to the subscriber, and then releases its charge. Runs where the subscriber's signals run. */
    private void giveNext(SerialExecutor here) {
        while (!giveOne()) {
            try {
                here.execute(() -> giveNext(here));
                return;
            } catch (Throwable noMemory) {
                // no task could be queued, so this thread gives the next item too
            }
        }
        // an end that came while items waited has not been signalled yet
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
            // the codec may read an empty body as null, for example for UUID
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
     * Ends the stream. The subscriber gets its last signal after the items that wait, or without them if there is an
     * error. Only the first call counts. Thread-safe.
     *
     * @param error reason why the stream fails; null for none
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
     * Releases the charge of the stream once no signal runs or waits: the subscriber may keep its thread for a long
     * time.
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
                // code may keep the subscription, which must not keep the connection in memory
                creditSink = null;
                context = null;
                return;
            }
            // while items wait, the last signal has to come after them: giveNext calls this method again
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
            // only logged: the stream is over, and this thread has other work to do
            CallbackFailures.log(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
        }
    }
}
