package dev.rpcx;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Takes the result that a handler brings later: the first, once, and none when its call has been given up. Then it knows
 * no call, so a stage that never ends keeps none. Calls of both wires await by this. Thread-safe.
 */
final class Awaited implements BiConsumer<@Nullable Object, @Nullable Throwable> {
    /** A stage that does not end in so long after its caller has gone is not waited for: it holds no thread. */
    static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Objects of a message that take no more than this are not charged while their call has a place. Source: the
     * codec's reader.
     */
    private static final int UNCHARGED_OBJECT_BYTES = 16 * 1024;

    /** Objects take at most so many bytes for each byte of their message. */
    private static final int MAX_OBJECT_BYTES_PER_BYTE = 16;

    /** A call whose handler has returned before it had a result. */
    interface Call {
        /** The result has come, on any thread. At most once. */
        void brought(@Nullable Object value, @Nullable Throwable thrown);
    }

    private final CompletionStage<?> stage;
    private @Nullable Call call;

    /** What stays charged until the stage ends, once the call has been given up. */
    private @Nullable Leftover leftover;

    private boolean isOver;

    Awaited(Call call, CompletionStage<?> stage) {
        this.call = call;
        this.stage = stage;
    }

    /** Awaits from here on: the result may come within this. */
    void begin() {
        try {
            stage.whenComplete(this);
        } catch (Throwable t) {
            accept(null, t);
        }
    }

    @Override
    public void accept(@Nullable Object value, @Nullable Throwable thrown) {
        Call waiting;
        Leftover left;
        synchronized (this) {
            isOver = true;
            waiting = take();
            left = leftover;
            leftover = null;
        }
        if (waiting != null) {
            waiting.brought(value, thrown);
        }
        if (left != null) {
            left.end();
        }
    }

    private synchronized @Nullable Call take() {
        Call waiting = call;
        call = null;
        return waiting;
    }

    /** The result is not waited for any more. @return false if it has come */
    boolean giveUp() {
        return take() != null;
    }

    synchronized boolean isOpen() {
        return call != null;
    }

    /**
     * Passes a cancel on to a call of the handler's own. Another stage is not cancelled: what its maker has hung on it to
     * give back would be passed over, and other calls may wait for the same one.
     */
    void cancel() {
        if (stage instanceof RPCXFuture<?> own) {
            own.cancel(true);
        }
    }

    /**
     * The call has been given up, and what its request was read into stays charged until the stage ends, or until nobody
     * can reach it any more.
     *
     * @param chargedBytes what the call has been charged for that, and has handed over
     * @param requestBytes of the parameters; what they were read into is not charged where it is small
     * @param metadataBytes what the request's metadata take
     * @return whether a place of a call has to stay charged for it, as nothing else can be
     */
    boolean leave(Account account, long chargedBytes, int requestBytes, int metadataBytes) {
        long uncharged =
                metadataBytes + Math.min(UNCHARGED_OBJECT_BYTES, (long) MAX_OBJECT_BYTES_PER_BYTE * requestBytes);
        if (chargedBytes + uncharged == 0) {
            return false;
        }
        boolean isCharged = account.take(Resource.OBJECT_BYTES, uncharged);
        leave(account.leave(this, isCharged ? chargedBytes + uncharged : chargedBytes, isCharged ? 0 : 1));
        return !isCharged;
    }

    /** This stays charged until the stage ends: not at all, where it has ended meanwhile. */
    private void leave(Leftover left) {
        synchronized (this) {
            if (!isOver) {
                leftover = left;
                return;
            }
        }
        left.end();
    }
}
