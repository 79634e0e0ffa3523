package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.HeapArray;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The items of one call that come in, as a publisher for one subscriber. Signals are given one after the other, on the
 * connection's event loop or where the method's handlers run. What the subscriber asks for goes to the peer as credit,
 * so no more items wait than were asked for.
 */
final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** Where credit goes. Any thread. */
    interface Way {
        void credit(long items);
    }

    /** The way back to the peer. Any thread. */
    interface Peer extends Way {
        void cancel();

        /** Too many bytes of items wait: the call has to end. Event loop only. */
        default void overflow() {}

        /** Runs what tells a subscriber whose signals are given on the event loop: there, and now where this is it. */
        default void onLoop(Runnable telling) {
            telling.run();
        }
    }

    /** More items than this leave nothing behind that they waited in. */
    private static final int MANY_ITEMS = 256;

    /** Bytes that a waiting item costs beside its own. */
    private static final int ITEM_BYTES = 128;

    private final Codec<Object> codec;
    private final Peer peer;

    /** Runs the subscriber's signals; null where they are given on the event loop at once. */
    private final @Nullable Serial signals;

    /**
     * Pays for the buffer of {@link #parts} and for {@link #items}; null at a client, whose call pays by
     * {@link #growth}. Guarded by this.
     */
    private final @Nullable Charge bytes;

    /** Pays for the object that an item is read into while the subscriber has it; null at a client. */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /**
     * The context of the subscriber's call, in which it is told; null for none, and once the subscriber has its last
     * word. Whoever keeps the subscription keeps nothing of that call. Guarded by this.
     */
    private @Nullable TimedContext context;

    /** Items that wait for the subscriber; guarded by this. */
    private ArrayDeque<ByteBuf> items = new ArrayDeque<>();

    /** The most that waited since there was none; guarded by this. */
    private int mostItems;

    /** The signal that gives the next item waits or runs: one for all that wait. Guarded by this. */
    private boolean isGiving;

    /** An item has begun and is not whole, whether or not it is kept. Event loop only. */
    private boolean receiving;

    /** The peer has said that no more items come. Event loop only. */
    private boolean peerEnded;

    // guarded by this

    /** The parts so far of an item that the subscriber takes; each item has a buffer of its own. */
    private @Nullable ByteBuf parts;

    private Flow.@Nullable Subscriber<? super Object> subscriber;

    /** Where the peer is told what is wanted; null until then. */
    private @Nullable Way way;

    /** What has been asked for and no peer has been told of. */
    private long wanted;

    /** Credit that the peer has and has not used. */
    private long granted;

    /** No more comes of the peer. */
    private boolean ended;

    private boolean told;

    /**
     * The subscriber is told nothing more but its end, and the end is this: of the peer, or what this side did with an
     * item that came before the peer's good end and waited. The first counts.
     */
    private @Nullable Throwable failure;

    /** Makes a client's: its subscriber is told on the event loop at once, so nothing waits, and in the context of here. */
    StreamReceiver(Codec<Object> codec, Peer peer) {
        this.context = CurrentCall.get();
        this.codec = codec;
        this.peer = peer;
        this.signals = null;
        this.bytes = null;
        this.objects = null;
        this.stream = null;
    }

    /**
     * @param place where the subscriber is told; null on the event loop, at once
     * @param context of the call that takes the stream
     */
    StreamReceiver(
            Codec<Object> codec, Peer peer, Account account, @Nullable Executor place, @Nullable TimedContext context) {
        this.context = context;
        this.codec = codec;
        this.peer = peer;
        this.signals = place == null ? null : new Serial(place);
        this.bytes = account.charge(Resource.ITEM_BYTES_IN);
        this.objects = account.charge(Resource.OBJECT_BYTES);
        this.stream = account.charge(Resource.STREAMS);
    }

    /** Before anything else. @return false if there are too many streams, and this one is not to be */
    boolean hold() {
        return stream == null || stream.add(1);
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> given) {
        begin(given);
        open();
    }

    /** Hands the subscription over. Until {@link #open} nothing is told: the subscriber is still busy with this. */
    void begin(Flow.Subscriber<? super Object> given) {
        synchronized (this) {
            if (subscriber != null) {
                throw new IllegalStateException("a stream of a call has one subscriber (expected: no second)");
            }
            subscriber = given;
        }
        given.onSubscribe(this);
    }

    void open() {
        open(peer);
    }

    /** Lets credit go out and signals come in. */
    void open(Way to) {
        long credit;
        synchronized (this) {
            way = to;
            credit = wanted;
            // beside what the peer has where this comes a second time, as the first has failed behind it
            granted = Streams.sum(granted, credit);
            wanted = 0;
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
     * The call has come to nobody, and goes another way: all that has been asked for is asked for there. Before
     * anything has come of it.
     */
    synchronized void takeBack() {
        way = null;
        wanted = Streams.sum(wanted, granted);
        granted = 0;
    }

    @Override
    public void request(long items) {
        if (items <= 0) {
            refuse(new IllegalArgumentException("request of " + items + " items (expected: > 0)"));
            return;
        }
        Way to;
        synchronized (this) {
            to = way;
            if (to == null) {
                wanted = Streams.sum(wanted, items);
                return;
            }
            granted = Streams.sum(granted, items);
        }
        to.credit(items);
    }

    /**
     * The subscriber has broken a rule, and is told so by its last signal (Reactive Streams, rule 3.9), where its other
     * signals come.
     */
    private void refuse(IllegalArgumentException why) {
        boolean endsByPeer;
        breakOff(why);
        synchronized (this) {
            // a client's call ends by its cancel, on the event loop
            endsByPeer = way != null && signals == null && bytes == null;
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

    /** No item is told from here on, also where the peer's good end waits behind some. */
    synchronized void breakOff(Throwable why) {
        if (!told && failure == null) {
            failure = why;
            dropItems();
        }
    }

    /** Under the lock. */
    private boolean takesNoMore() {
        return ended || told || failure != null;
    }

    @Override
    public void cancel() {
        synchronized (this) {
            told = true;
            dropItems();
        }
        peer.cancel();
    }

    // ---- on the event loop

    /** As below, of any size: no frame is larger than what a client takes. */
    void onItem(ByteBuf payload, boolean more) {
        onItem(payload, more, Integer.MAX_VALUE);
    }

    /**
     * An item or its first part, which costs one credit.
     *
     * @return false if it is larger than allowed; one that comes without credit ends the connection first
     */
    boolean onItem(ByteBuf payload, boolean more, int maxBytes) {
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
            tell(payload);
        }
        return true;
    }

    /** Whether this way back to a peer is this stream's own. */
    boolean isOf(Peer way) {
        return peer == way;
    }

    /** The peer has no more items. */
    void onEnd() {
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

    /** Bytes that are kept of an item that is not whole. */
    synchronized int partBytes() {
        return parts == null ? 0 : parts.readableBytes();
    }

    boolean isReceiving() {
        return receiving;
    }

    /** @return false if the item would be larger than allowed */
    boolean onPart(ByteBuf payload, boolean more, int maxBytes) {
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
                tell(whole);
            }
        }
        return true;
    }

    /**
     * Keeps a part, unless the subscriber takes no more.
     *
     * @return false if the call has been ended, since too much is held
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

    /** How many bytes of memory it costs to keep a part of so many: none where the subscriber takes no more. */
    synchronized long growth(int bytes) {
        if (takesNoMore()) {
            return 0;
        }
        ByteBuf kept = parts;
        return kept == null ? bytes : HeapArray.growth(kept, bytes);
    }

    /** Takes the item out, which is charged anew if it waits for its subscriber. */
    private synchronized @Nullable ByteBuf takeParts() {
        ByteBuf whole = parts;
        dropParts();
        return whole;
    }

    /** Under the lock. */
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

    /** Gives back what an item cost that was charged; nothing is left of it if all has been given back meanwhile. */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (items.isEmpty() && (ended || parts == null)) {
                // all of it: a part gives back whole steps only, and a quiet stream would keep one
                bytes.release();
            } else {
                bytes.release(Math.min(amount, bytes.held()));
            }
        }
    }

    /** Nothing that has come is told any more. */
    private synchronized void dropItems() {
        forgetItems();
        parts = null;
        if (bytes != null) {
            bytes.release();
        }
    }

    /** Where many waited, what held them is given up with the last. Under the lock. */
    private void forgetItems() {
        if (mostItems > MANY_ITEMS) {
            items = new ArrayDeque<>();
        } else {
            items.clear();
        }
        mostItems = 0;
    }

    private void tell(ByteBuf item) {
        Serial elsewhere = signals;
        if (elsewhere == null) {
            give(item);
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
                // a copy: the buffer that it was read into is used again
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

    private void giveLater(Serial elsewhere) {
        try {
            elsewhere.execute(() -> giveNext(elsewhere));
        } catch (Throwable noThread) {
            synchronized (this) {
                isGiving = false;
            }
            throw noThread;
        }
    }

    /** Runs where the subscriber does. What an item costs is given back when the subscriber has dealt with it. */
    private void giveNext(Serial here) {
        while (!giveOne()) {
            try {
                here.execute(() -> giveNext(here));
                return;
            } catch (Throwable noMemory) {
                // nothing else would give the next one
            }
        }
        // it has passed by while items waited
        tellEnd();
    }

    /** @return whether it was the last that waits */
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
            give(item);
            discharge(cost);
        }
        return isLast;
    }

    private void give(ByteBuf item) {
        Flow.Subscriber<? super Object> to;
        TimedContext own;
        synchronized (this) {
            to = told || failure != null ? null : subscriber;
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
            // what is empty is read as null where a type has no other value for it, as UUID
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
     * Gives the last signal, behind the items that wait where the end is a good one. Any thread; only the first counts.
     *
     * @param error null for a good end
     */
    void end(@Nullable Throwable error) {
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
        Serial elsewhere = signals;
        try {
            if (elsewhere == null) {
                tellEnd();
            } else {
                elsewhere.execute(this::tellEnd);
            }
        } finally {
            letGo();
        }
    }

    /** The stream counts as long as its subscriber keeps a thread: one that was given an item may come back late. */
    private void letGo() {
        Serial elsewhere = signals;
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
            if (ended && told) {
                // the subscriber has cancelled, or been told: whoever keeps the subscription keeps nothing of the
                // call's connection
                way = null;
                context = null;
                return;
            }
            // while items wait, this is the signal of open(), and that of the end comes behind them
            if (!ended || way == null || to == null || !items.isEmpty()) {
                return;
            }
            told = true;
            way = null;
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
            // the stream is over in any case; what else goes by the same thread goes on
            CallbackFailures.log(e);
        } finally {
            CurrentCall.swap(before);
            LoopThread.forgetInterrupt();
        }
    }
}
