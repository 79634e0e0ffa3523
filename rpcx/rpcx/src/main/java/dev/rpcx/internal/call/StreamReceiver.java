package dev.rpcx.internal.call;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.CallbackFailures;
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
 * Gives the incoming items of one call to one subscriber. For each item that the subscriber requests, the peer gets a
 * credit, that is, permission to send one item. So no more items wait here than have been requested.
 *
 * <p>The subscriber gets its signals one after the other. At a client, and for a handler that runs on the event loop,
 * the signals usually run on the connection's event loop. For any other handler, the signals usually run on the threads
 * for the handlers of its method.
 */
public final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** Sends credit to the peer, that is, permission to send a number of items. Any thread may call {@code credit}. */
    public interface CreditSink {
        void credit(long items);
    }

    /**
     * Sends credit for a stream to the other side. At a client, {@code cancel} cancels the stream's call. At a server,
     * {@code cancel} does nothing. Any thread may call the methods, unless a method says otherwise.
     */
    public interface Peer extends CreditSink {
        void cancel();

        /** Ends the call, because the items that wait take too many bytes. Called only on the event loop. */
        default void overflow() {}

        /**
         * Runs a task that may call a subscriber whose signals run on the event loop. By default, the task runs
         * immediately on the calling thread. A server runs the task immediately only if the calling thread is the event
         * loop, or if the loop has ended. Otherwise the server hands the task to the loop.
         */
        default void onLoop(Runnable task) {
            task.run();
        }
    }

    /**
     * If more items than this number have waited in the queue at one time, this class replaces the queue by a new one
     * when the queue is emptied. Otherwise, the empty queue would keep its memory.
     */
    private static final int MANY_ITEMS = 256;

    /**
     * Number of bytes that the connection is charged for each waiting item in addition to the bytes of the item's
     * buffer.
     */
    private static final int ITEM_BYTES = 128;

    private final Codec<Object> codec;
    private final Peer peer;

    /** Runs the signals of the subscriber in order. Null if each signal runs immediately, usually on the event loop. */
    private final @Nullable SerialExecutor signals;

    /**
     * Charge for the memory of {@link #items} and {@link #parts}. Null at a client: there, no items wait, and the call
     * itself is charged for the parts, by the number of bytes that {@link #growth} returns. Guarded by {@code this}.
     */
    private final @Nullable Charge bytes;

    /**
     * Charge for the memory of the objects of one item, while the subscriber's {@code onNext} runs. Null at a client.
     */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /**
     * Context of the call, in which the subscriber's signals run; null if there is none. Cleared before the last signal
     * or at the end of a cancelled stream, since the subscriber may keep this receiver. Guarded by {@code this}.
     */
    private @Nullable TimedContext context;

    /** Complete items that wait until they are given to the subscriber. Guarded by {@code this}. */
    private ArrayDeque<ByteBuf> items = new ArrayDeque<>();

    /** Largest number of items that waited at one time since {@link #items} was last empty. Guarded by {@code this}. */
    private int peakItems;

    /**
     * Whether a task that gives a waiting item to the subscriber is queued or running. While the value is true, a new
     * item needs no new task, because the task queues the next one if more items wait. When a task takes the last
     * waiting item, the value becomes false, even before the subscriber gets this item. Guarded by {@code this}.
     */
    private boolean isGiving;

    /**
     * Whether the first part of an item has arrived, but not yet the last part. This is also true if the parts are not
     * kept, for example because the subscriber gets no more items. Used only on the event loop.
     */
    private boolean receiving;

    /** Whether the peer has said that no more items come. Used only on the event loop. */
    private boolean peerEnded;

    // the fields from here on are guarded by this object's lock

    /**
     * Bytes that have arrived of an incomplete item; null if no such bytes are kept. Each item has a buffer of its own.
     */
    private @Nullable ByteBuf parts;

    private Flow.@Nullable Subscriber<? super Object> subscriber;

    /**
     * Sends credit to the peer; null while no credit can be sent. No credit can be sent at these times:
     *
     * <ul>
     *   <li>before {@link #open}, and between {@link #takeBack} and the next {@code open}
     *   <li>during and after the subscriber's last signal
     *   <li>after the end of a cancelled stream
     * </ul>
     *
     * <p>While one thread opens the stream, other threads can request items. Under the lock, a thread that finds null
     * here adds the items to {@link #demand}, and {@code open} then takes the demand. A thread that finds a value here
     * sends the credit itself. So credit is neither lost nor sent twice. Tested by {@code CreditRace}.
     */
    private @Nullable CreditSink creditSink;

    /** Number of items that the subscriber has requested, and for which the peer has not been given credit yet. */
    private long demand;

    /** Number of items that the peer is still allowed to send, by the credit that it was given. */
    private long granted;

    /**
     * Whether {@link #end} has been called. Items that arrive after that are dropped.
     *
     * <p>While one thread calls {@code end}, another thread can call {@link #open}. Under the lock, {@code end} stores
     * this field, and {@code open} stores {@link #creditSink}. After its store, each of the two methods makes
     * {@link #tellEnd} run, which gives the last signal only if both fields are set and no item waits. So the last
     * signal is given even if the two methods run at the same time, and only once. Tested by
     * {@code RacesTest.aStreamEndsOnceWhoeverEndsIt}.
     */
    private boolean ended;

    private boolean terminated;

    /**
     * First error of the stream, from the peer or from this side; null if there is none. After an error, the subscriber
     * gets no more items, and the error is the subscriber's last signal. An error is possible even after the peer has
     * ended the stream, for example if a waiting item cannot be read.
     */
    private @Nullable Throwable failure;

    /**
     * Creates the receiver of a client. The subscriber's signals run in the context that the thread calling this
     * constructor has now. No executor is used: the signals run on the event loop, except that the last signal can run
     * on a thread that calls {@link #open} or {@link #end}.
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
     * @param executor runs the subscriber's signals; null to run each signal at once, on the event loop
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
     * Counts this stream as one of the connection's streams. A server has to call this method before any other method;
     * for a client, this method does nothing.
     *
     * @return false if the connection or the server has too many streams, so that this stream must not begin
     */
    public boolean hold() {
        return stream == null || stream.add(1);
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> given) {
        begin(given);
        open();
    }

    /** Gives the subscriber its subscription. The subscriber gets items and other signals only after {@link #open}. */
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

    /**
     * Begins to give the subscriber its signals, and to send the peer credit for the items that the subscriber
     * requests.
     *
     * @param to sends the credit to the peer
     */
    public void open(CreditSink to) {
        long credit;
        synchronized (this) {
            creditSink = to;
            credit = demand;
            // the credit counts as given even if sending it fails below and this method is called again
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
     * Takes back all credit that was sent, because no server has received the call. The call is sent again on another
     * connection after that, and the next {@link #open} sends the credit there.
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
     * Ends the stream because the subscriber has broken a rule. The subscriber's last signal is an error that describes
     * the fault, as rule 3.9 of Reactive Streams demands.
     */
    private void refuse(IllegalArgumentException why) {
        boolean endsByPeer;
        breakOff(why);
        synchronized (this) {
            // At a client whose stream is open, peer.cancel() below ends the call. The end of the call then ends the
            // stream on the event loop, so this method does not end the stream itself.
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
     * Makes the stream fail. The subscriber gets no more items. Items that still wait are dropped, even if the peer has
     * ended the stream without an error.
     */
    public synchronized void breakOff(Throwable why) {
        if (!terminated && failure == null) {
            failure = why;
            dropItems();
        }
    }

    /**
     * Returns whether items that still arrive are dropped and not given to the subscriber. The caller holds the lock.
     */
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

    // ---- items from the peer; onItem, onPart and onEnd are called on the event loop

    /**
     * Takes an item, or the first part of one, without a check of its size. A client needs no check here: the item or
     * part comes in one frame, and no frame is larger than the largest item that the client accepts.
     */
    public void onItem(ByteBuf payload, boolean more) {
        onItem(payload, more, Integer.MAX_VALUE);
    }

    /**
     * Takes an item, or the first part of one, which uses up one credit of the peer. If the peer has no credit, its
     * connection is ended.
     *
     * @param more whether this is only the first part of the item
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

    /** Returns whether this stream was created with the given {@link Peer}. */
    public boolean isOf(Peer way) {
        return peer == way;
    }

    /** Ends the stream, because the peer has said that no more items come. */
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

    /** Returns how many bytes are kept of an item whose last part has not arrived. */
    public synchronized int partBytes() {
        return parts == null ? 0 : parts.readableBytes();
    }

    public boolean isReceiving() {
        return receiving;
    }

    /**
     * Takes a further part of an item. With the last part, the subscriber gets the item.
     *
     * @param more whether parts of the item are still missing
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
     * Keeps a part of an item, unless the subscriber gets no more items.
     *
     * @return false if there was no room for the part, so that the call has been ended
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
     * Returns how many more bytes of memory are needed to keep another part of an item. Returns 0 if the subscriber
     * gets no more items, since no part is kept in this case.
     *
     * @param bytes size of the part in bytes
     */
    public synchronized long growth(int bytes) {
        if (takesNoMore()) {
            return 0;
        }
        ByteBuf kept = parts;
        return kept == null ? bytes : HeapArray.growth(kept, bytes);
    }

    /**
     * Removes and returns the item whose last part has arrived; null if its parts were not kept. The charge for the
     * item's memory is released. If the item has to wait for the subscriber, its memory is charged again.
     */
    private synchronized @Nullable ByteBuf takeParts() {
        ByteBuf whole = parts;
        dropParts();
        return whole;
    }

    /** Forgets the kept parts of an item, and releases the charge for their memory. The caller holds the lock. */
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
     * Releases the charge for an item that the subscriber has been given. Releases everything that {@link #bytes} holds
     * if that is less than the charge for the item, or if no items and no parts are kept any more.
     *
     * @param amount number of bytes that were charged for the item
     */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (items.isEmpty() && (ended || parts == null)) {
                // No item and no part is kept, so the whole charge is released. A call of release(amount) would give
                // back only a multiple of a fixed step, so some bytes would stay charged while the stream is quiet.
                bytes.release();
            } else {
                bytes.release(Math.min(amount, bytes.held()));
            }
        }
    }

    /** Drops all items and parts that the subscriber has not been given, and releases the charge for their memory. */
    private synchronized void dropItems() {
        forgetItems();
        parts = null;
        if (bytes != null) {
            bytes.release();
        }
    }

    /**
     * Empties the queue of waiting items. If many items have waited at one time, the queue is replaced by a new one, to
     * free its memory. The caller holds the lock.
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
                // the item is copied, since the buffer that contains it is used again for the next bytes from the peer
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
     * Gives the next waiting item to the subscriber. If more items wait, queues a task that calls this method again.
     * Runs where the subscriber's signals run.
     */
    private void giveNext(SerialExecutor here) {
        while (!giveOne()) {
            try {
                here.execute(() -> giveNext(here));
                return;
            } catch (Throwable noMemory) {
                // a task for the next item could not be queued, so this thread gives that item too
            }
        }
        // if the peer has ended the stream while items waited, the subscriber gets its last signal here
        tellEnd();
    }

    /**
     * Gives one waiting item to the subscriber, and then releases the charge for that item.
     *
     * @return whether no more items wait
     */
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
            // for some types, for example UUID, the codec reads an empty body as null
            return Objects.requireNonNull(value, "it is null (expected: a value, since a stream has no null)");
        } catch (Throwable e) {
            throw StreamErrors.unreadableItem(e);
        }
    }

    /**
     * Ends the stream; only the first call has an effect. Without an error, the subscriber gets the waiting items
     * first, and then its last signal. With an error, the subscriber gets only its last signal. Thread-safe.
     *
     * @param error why the stream fails; null if it does not fail
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
     * Stops counting this stream as one of the connection's streams when no signal of the subscriber runs or waits in
     * {@link #signals} any more. Until that time, the subscriber may keep a thread busy.
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
                // User code may keep this object, since this object is the subscriber's subscription. Without the next
                // two lines, this object would then keep a client's connection in memory.
                creditSink = null;
                context = null;
                return;
            }
            // While items wait, the last signal is not given yet, since it has to come after them. When no more items
            // wait, giveNext calls this method again.
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
            // the exception is only logged, because the stream is over and this thread has other work to do
            CallbackFailures.log(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
        }
    }
}
