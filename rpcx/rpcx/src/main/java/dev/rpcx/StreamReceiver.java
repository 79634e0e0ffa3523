package dev.rpcx;

import dev.rpcx.codec.Codec;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
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
    }

    private final Codec<Object> codec;
    private final Peer peer;
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

    StreamReceiver(Codec<Object> codec, Peer peer) {
        this.codec = codec;
        this.peer = peer;
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
        tellEnd();
    }

    @Override
    public void request(long items) {
        if (items <= 0) {
            cancel();
            end(new IllegalArgumentException("request of " + items + " items (expected: > 0)"));
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

    private static long sum(long a, long b) {
        return Math.min(Long.MAX_VALUE - a, b) + a;
    }

    @Override
    public void cancel() {
        synchronized (this) {
            told = true;
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
            parts.clear().writeBytes(payload);
            receiving = true;
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

    boolean isReceiving() {
        return receiving;
    }

    /** @return false if the item would be larger than allowed */
    boolean onPart(ByteBuf payload, boolean more, int maxBytes) {
        if (parts.readableBytes() + payload.readableBytes() > maxBytes) {
            return false;
        }
        parts.writeBytes(payload);
        if (!more) {
            receiving = false;
            tell(parts);
        }
        return true;
    }

    private void tell(ByteBuf item) {
        Flow.Subscriber<? super Object> to;
        synchronized (this) {
            to = told || ended ? null : subscriber;
        }
        if (to == null) {
            return;
        }
        try {
            to.onNext(codec.read(item));
        } catch (RuntimeException e) {
            peer.cancel();
            end(e);
        }
    }

    /** The last signal: an error, or null for a good end. From any thread; only the first counts. */
    void end(@Nullable Throwable error) {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            failure = error;
        }
        tellEnd();
    }

    private void tellEnd() {
        Flow.Subscriber<? super Object> to;
        synchronized (this) {
            to = subscriber;
            if (!ended || !open || told || to == null) {
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
