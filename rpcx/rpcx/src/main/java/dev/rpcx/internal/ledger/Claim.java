package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Charges a connection for bytes that wait for the connection's peer. Such bytes are the beginning of a frame or TLS
 * record whose rest has not arrived, or output that the peer does not read. If there is no room for a charge,
 * {@link Claims} chooses connections to end. The choice depends on the number of such bytes that a connection holds,
 * and on the time for which they have waited. If the chosen connections do not make enough room, the charge is refused.
 * A connection whose charge is refused has to end.
 *
 * <p>Any thread may call {@link #peer}, {@link #isOnLoopOf} and the methods that say so. All other methods are called
 * only on the connection's event loop.
 */
public final class Claim {
    private final Account account;
    private final Claims claims;
    private final EventLoop loop;
    private final Runnable end;
    private final Charge charge;
    private boolean isKnown;
    private boolean isOver;

    /**
     * What this claim holds during the present wait; null if it holds nothing. The connection's event loop writes the
     * field, and other event loops read it.
     */
    private volatile @Nullable Hold hold;

    /**
     * The bytes that a claim holds during one wait for the connection's peer. The hold is over when the peer has sent
     * bytes for which the connection waited, or has read output. If the claim then still holds bytes, they become a new
     * hold. To end a connection, {@link Claims} chooses the connection's hold. If the chosen hold is over before the
     * connection has been ended, the connection does not end.
     */
    static final class Hold {
        final Claim claim;
        final long sinceNanos;

        /**
         * Number of bytes of this hold. The connection's event loop writes the field, and other event loops read it.
         */
        private volatile long bytes;

        /**
         * Number of bytes that this hold had when {@link Claims} chose it, in order to end its connection. The number
         * is 0 before the hold is chosen, and again when the hold is over or when its connection could not be ended.
         * Other claims can take these bytes even before the connection has ended. Only {@link Claims} writes this
         * field, while holding its lock. The connection's event loop reads it without the lock.
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
     * Creates a claim that holds nothing yet.
     *
     * @param end ends the connection; called on the connection's event loop
     */
    public Claim(Account account, Resource kind, EventLoop loop, Runnable end) {
        this.account = account;
        this.claims = account.claims(kind);
        this.loop = loop;
        this.end = end;
        this.charge = account.charge(kind);
    }

    /**
     * Sets the number of bytes that this claim holds. If there is no room for them, other connections are ended.
     * Connections on the same event loop end before this method returns, and the others end on their own event loops,
     * usually later. The claim does not get the {@code wanted} bytes in these cases:
     *
     * <ul>
     *   <li>There would be too little room even without the connections that {@link Claims} would rather end than this
     *       one. The number of bytes has not changed.
     *   <li>The connection is over. The number of bytes is 0.
     * </ul>
     *
     * @return whether the claim holds the {@code wanted} bytes now
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
            // another event loop can take the room that has just been made, so this method tries again
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
     * Begins a new {@link Hold} with the bytes that this claim still holds. Called when a wait for the peer is over:
     * the peer has sent bytes for which the connection waited, or has read output. The waiting time of the new hold
     * begins at {@code nowNanos}. If this claim holds nothing, does nothing.
     */
    public void renew(long nowNanos) {
        Hold held = hold;
        if (held != null) {
            hold = new Hold(this, held.bytes, nowNanos);
            spare(held);
        }
    }

    /** Releases all bytes that this claim holds. A second call does nothing. */
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

    /**
     * Releases all bytes that this claim holds, because the connection is over. From then on, {@link #set} accepts no
     * bytes.
     */
    public void close() {
        isOver = true;
        release();
        if (isKnown) {
            isKnown = false;
            claims.remove(this);
        }
    }

    /** Returns the current hold; null if this claim holds nothing. Any thread may call this method. */
    @Nullable
    Hold hold() {
        return hold;
    }

    /** Returns the number of bytes that this claim holds. Any thread may call this method. */
    public long bytes() {
        Hold held = hold;
        return held == null ? 0 : held.bytes;
    }

    /**
     * Returns the key by which {@link Claims} groups the claims: the peer's address. For a connection without an
     * address, the key is the connection's account.
     */
    Object peer() {
        Ledger.Address address = account.address;
        return address == null ? account : address;
    }

    boolean isOnLoopOf(Claim other) {
        return loop == other.loop;
    }

    /**
     * Ends the connection if {@code chosen} is still this claim's current hold. Only the connection's event loop may
     * call this method.
     */
    void endNow(Hold chosen) {
        try {
            if (hold == chosen) {
                end.run();
            }
        } catch (Throwable t) {
            // the connection that asks for room must not fail because another connection could not end
            ThreadTools.report(t);
        } finally {
            if (hold == chosen) {
                close();
            }
            claims.onHoldEnded(chosen);
        }
    }

    /** Makes the connection's event loop call {@link #endNow}. Any thread may call this method. */
    void endSoon(Hold chosen) {
        try {
            loop.execute(() -> endNow(chosen));
        } catch (RejectedExecutionException ended) {
            // the event loop is shutting down and ends all its connections, so this hold will be over too
            claims.onHoldEnded(chosen);
        }
    }
}
