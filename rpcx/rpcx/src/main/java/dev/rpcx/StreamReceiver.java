package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/**
 * The items of one call that come in, as a publisher for one subscriber. Signals are given on the connection's event loop, one after the
 * other; what the subscriber asks for goes to the peer as credit, so nothing is ever stored.
 */
final class StreamReceiver implements Flow.Publisher<Object>, Flow.Subscription {
    /** The way back to the peer; from any thread. */
    interface Peer {
        void credit(long items);

        void cancel();

        /** Too many bytes of items wait: the call has to end. On the event loop. */
        default void overflow() {}
    }

    private final Codec<Object> codec;
    private final Peer peer;

    /** Where the subscriber is told; null on the event loop, at once. */
    private final @Nullable Serial signals;

    /** Of parts and of items that wait for the subscriber; guarded by this. */
    private final @Nullable Charge bytes;

    /** Of what an item is read into, while the subscriber has it; where the subscriber is told. Null at a client. */
    private final @Nullable Charge objects;

    private final @Nullable Charge stream;

    /** Items that wait for the subscriber; guarded by this. */
    private final ArrayDeque<ByteBuf> items = new ArrayDeque<>();

    /** What an item costs beside its bytes. */
    private static final int ITEM_BYTES = 128;

    private final ByteBuf parts = Unpooled.buffer(0);
    private boolean receiving;

    /** The peer has said that no more items come. */
    private boolean peerEnded;

    // guarded by this
    private Flow.@Nullable Subscriber<? super Object> subscriber;
    private boolean open;
    private long wanted;

    /** Credit that the peer has and has not used. */
    private long granted;

    private boolean ended;
    private boolean told;
    private @Nullable Throwable failure;

    /** What the subscriber did wrong: nothing but the end is told after that, and the end is this. */
    private @Nullable Throwable fault;

    /** A client's: its subscriber is told on the event loop at once, so nothing waits. */
    StreamReceiver(Codec<Object> codec, Peer peer) {
        this.codec = codec;
        this.peer = peer;
        this.signals = null;
        this.bytes = null;
        this.objects = null;
        this.stream = null;
    }

    /** @param place where the subscriber is told; null on the event loop, at once */
    StreamReceiver(Codec<Object> codec, Peer peer, Account account, @Nullable Executor place) {
        this.codec = codec;
        this.peer = peer;
        this.signals = place == null ? null : new Serial(place);
        this.bytes = account.charge(Resource.ITEM_BYTES_IN);
        this.objects = account.charge(Resource.OBJECT_BYTES);
        this.stream = account.charge(Resource.STREAMS);
        this.stream.add(1);
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

    /** From here on credit goes out and signals come in. */
    void open() {
        long credit;
        synchronized (this) {
            open = true;
            credit = wanted;
            granted = credit;
            wanted = 0;
        }
        if (credit > 0) {
            peer.credit(credit);
        }
        if (signals == null) {
            tellEnd();
        } else {
            signals.execute(this::tellEnd);
        }
    }

    @Override
    public void request(long items) {
        if (items <= 0) {
            refuse(new IllegalArgumentException("request of " + items + " items (expected: > 0)"));
            return;
        }
        synchronized (this) {
            if (!open) {
                wanted = sum(wanted, items);
                return;
            }
            granted = sum(granted, items);
        }
        peer.credit(items);
    }

    /** The subscriber has broken a rule, and is told so by its last signal (Reactive Streams, rule 3.9), where its other signals come. */
    private void refuse(IllegalArgumentException why) {
        boolean endsByPeer;
        synchronized (this) {
            if (fault == null) {
                fault = why;
            }
            // a client's call ends by its cancel, on the event loop
            endsByPeer = open && signals == null && bytes == null;
        }
        if (!endsByPeer) {
            end(why);
        }
        peer.cancel();
    }

    private static long sum(long a, long b) {
        return Math.min(Long.MAX_VALUE - a, b) + a;
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

    /** An item or its first part, which costs one credit. */
    void onItem(ByteBuf payload, boolean more) {
        refuseAfterEnd("an item");
        synchronized (this) {
            if (granted == 0) {
                throw new WireFault("an item without credit");
            }
            granted--;
        }
        if (more) {
            receiving = true;
            parts.clear();
            addPart(payload);
        } else {
            tell(payload);
        }
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
    int partBytes() {
        return parts.readableBytes();
    }

    boolean isReceiving() {
        return receiving;
    }

    /** @return false if the item would be larger than allowed */
    boolean onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (parts.readableBytes() + payload.readableBytes() > maxBytes) {
            return false;
        }
        if (!addPart(payload)) {
            return true;
        }
        if (!more) {
            receiving = false;
            int whole = parts.readableBytes();
            // charged anew if it waits for its subscriber
            discharge(whole);
            tell(parts);
            freeParts();
        }
        return true;
    }

    /** Nothing is stored for a subscriber who takes no more. @return false if the call has been ended, since too much is held */
    private boolean addPart(ByteBuf payload) {
        boolean isTaken;
        boolean fits;
        synchronized (this) {
            isTaken = !ended && !told && fault == null;
            fits = !isTaken || charge(payload.readableBytes());
        }
        if (!fits) {
            peer.overflow();
            return false;
        }
        if (isTaken) {
            parts.writeBytes(payload);
        } else {
            freeParts();
        }
        return true;
    }

    /** What has come of an item that nobody takes. On the event loop. */
    void freeParts() {
        parts.clear();
        if (parts.capacity() > Outbound.SMALL_BYTES) {
            parts.capacity(0);
        }
    }

    private synchronized boolean charge(long amount) {
        return ended || told || bytes == null || bytes.add(amount);
    }

    /** After an end nothing is charged any more. */
    private synchronized void discharge(long amount) {
        if (bytes != null) {
            if (ended && items.isEmpty()) {
                bytes.release();
            } else {
                bytes.release(Math.min(amount, bytes.held()));
            }
        }
    }

    private synchronized void dropItems() {
        items.clear();
        if (bytes != null) {
            bytes.release();
        }
    }

    private void tell(ByteBuf item) {
        Serial elsewhere = signals;
        if (elsewhere == null) {
            give(item);
            return;
        }
        boolean fits = true;
        synchronized (this) {
            if (told || ended) {
                return;
            }
            fits = charge(item.readableBytes() + ITEM_BYTES);
            if (fits) {
                // its own: what has been read is used again
                items.add(Unpooled.wrappedBuffer(ByteBufUtil.getBytes(item)));
            }
        }
        if (fits) {
            elsewhere.execute(this::giveNext);
        } else {
            peer.overflow();
        }
    }

    /** Where the subscriber runs. What an item costs is given back when the subscriber has dealt with it. */
    private void giveNext() {
        ByteBuf item;
        synchronized (this) {
            item = items.poll();
        }
        if (item != null) {
            int cost = item.readableBytes() + ITEM_BYTES;
            give(item);
            discharge(cost);
        }
    }

    private void give(ByteBuf item) {
        Flow.Subscriber<? super Object> to;
        synchronized (this) {
            to = told || fault != null ? null : subscriber;
        }
        if (to == null) {
            return;
        }
        try {
            to.onNext(read(item));
        } catch (Throwable e) {
            peer.cancel();
            end(e);
        } finally {
            if (objects != null) {
                objects.release();
            }
        }
    }

    private Object read(ByteBuf item) {
        try {
            return objects == null ? codec.read(item) : codec.read(item, objects);
        } catch (Throwable e) {
            throw new RPCXException(
                    ServerCall.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                    "an item cannot be read: " + (e instanceof CodecException ? e.getMessage() : e),
                    RPCXException.Executed.EXECUTED,
                    e);
        }
    }

    /** The last signal: an error, or null for a good end. From any thread; only the first counts. */
    void end(@Nullable Throwable error) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            failure = fault == null ? error : fault;
            if (stream != null) {
                stream.release();
            }
            if (failure != null || items.isEmpty()) {
                dropItems();
            }
        }
        Serial elsewhere = signals;
        if (elsewhere == null) {
            tellEnd();
        } else {
            elsewhere.execute(this::tellEnd);
        }
    }

    private void tellEnd() {
        Flow.Subscriber<? super Object> to;
        synchronized (this) {
            to = subscriber;
            // while items wait, this is the signal of open(), and that of the end comes behind them
            if (!ended || !open || told || to == null || !items.isEmpty()) {
                return;
            }
            told = true;
        }
        if (failure == null) {
            to.onComplete();
        } else {
            to.onError(failure);
        }
    }
}
