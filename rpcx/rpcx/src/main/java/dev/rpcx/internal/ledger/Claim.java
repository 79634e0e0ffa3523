package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Charge for what a connection holds because of its peer: the beginning of a frame whose end has not arrived, bytes in
 * the socket's queue that the peer does not read, or replies that wait behind them. To refuse such a charge would end
 * the connection. So if the pool is full, the connection that has held most for longest ends instead.
 *
 * <p>{@link Claims} chooses a {@link Hold} to end, not a connection: what the connection holds later is a new hold.
 *
 * <p>Event loop only, except for methods that say otherwise. Other threads read {@link #hold()}.
 */
public final class Claim {
    private final Account account;
    private final Claims claims;
    private final EventLoop loop;
    private final Runnable end;
    private final Charge charge;
    private boolean isKnown;
    private boolean isOver;
    private volatile @Nullable Hold hold;

    /** What the connection holds until the peer has sent the missing bytes, or has read the waiting ones. */
    static final class Hold {
        final Claim claim;
        final long sinceNanos;
        private volatile long bytes;

        /**
         * Size of this hold when it was chosen to end; other claims may take these bytes already. 0 if it has not been
         * chosen. Only {@link Claims} writes this field.
         */
        volatile long promisedBytes;

        private Hold(Claim claim, long bytes, long sinceNanos) {
            this.claim = claim;
            this.bytes = bytes;
            this.sinceNanos = sinceNanos;
        }

        public long bytes() {
            return bytes;
        }

        boolean isChosen() {
            return promisedBytes != 0;
        }
    }

    /**
     * Creates the claim of a connection, which holds nothing yet.
     *
     * @param end ends the connection, so that it soon holds nothing. Called on the connection's event loop
     */
    public Claim(Account account, Resource kind, EventLoop loop, Runnable end) {
        this.account = account;
        this.claims = account.claims(kind);
        this.loop = loop;
        this.end = end;
        this.charge = account.charge(kind);
    }

    /**
     * Sets the number of bytes that are held. If the pool is full, other connections are ended to make room. Those of
     * the same event loop are ended before this method returns.
     *
     * @return false if no room can be made, if this claim is the greediest, or if the connection is over; then nothing
     *     has changed
     */
    public boolean set(long wanted, long nowNanos) {
        if (wanted == 0) {
            release();
            return true;
        }
        if (isOver) {
            return false;
        }
        while (!charge.set(wanted)) {
            // another thread may take the room that this thread has made; then this thread makes room again
            if (!claims.makeRoom(this, wanted - charge.held() + Charge.STEP_BYTES, nowNanos) || isOver) {
                return false;
            }
        }
        if (!isKnown) {
            isKnown = true;
            claims.add(this);
        }
        Hold held = hold;
        if (held == null) {
            hold = new Hold(this, wanted, nowNanos);
        } else {
            held.bytes = wanted;
        }
        return true;
    }

    /**
     * Called when the peer has sent or read the bytes that the current hold has waited for. What is left becomes a new
     * hold, which waits from now on.
     */
    public void renew(long nowNanos) {
        Hold held = hold;
        if (held != null) {
            hold = new Hold(this, held.bytes, nowNanos);
            spare(held);
        }
    }

    /** Releases all that is held. A second call does nothing. */
    public void release() {
        Hold held = hold;
        if (held != null) {
            hold = null;
            charge.release();
            spare(held);
        }
    }

    private void spare(Hold held) {
        if (held.isChosen()) {
            claims.onHoldEnded(held);
        }
    }

    /** Releases all that is held, because the connection is over. From then on nothing can be held. */
    public void close() {
        isOver = true;
        release();
        if (isKnown) {
            isKnown = false;
            claims.remove(this);
        }
    }

    /** Returns the current hold; null if nothing is held. Thread-safe: any thread may call this. */
    @Nullable
    Hold hold() {
        return hold;
    }

    /** Returns the number of bytes that are held. Thread-safe: any thread may call this. */
    public long bytes() {
        Hold held = hold;
        return held == null ? 0 : held.bytes;
    }

    /**
     * Returns the peer, by which claims are grouped: the address, or the account of a connection without an address.
     */
    Object peer() {
        Ledger.Address address = account.address;
        return address == null ? account : address;
    }

    boolean isOnLoopOf(Claim other) {
        return loop == other.loop;
    }

    /** Ends the connection, unless the chosen hold has ended already. Event loop only. */
    void endNow(Hold chosen) {
        try {
            if (hold == chosen) {
                end.run();
            }
        } catch (Throwable t) {
            // the failure belongs to the connection that ends, not to the one that asks for room
            ThreadTools.report(t);
        } finally {
            if (hold == chosen) {
                close();
            }
            claims.onHoldEnded(chosen);
        }
    }

    /** Has the event loop call {@code endNow}. Thread-safe: any thread may call this. */
    void endSoon(Hold chosen) {
        try {
            loop.execute(() -> endNow(chosen));
        } catch (RejectedExecutionException ended) {
            // when the event loop ends, all its connections end with it, and so does this hold
            claims.onHoldEnded(chosen);
        }
    }
}
