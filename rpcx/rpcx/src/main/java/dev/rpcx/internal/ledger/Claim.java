package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Charge for what a connection holds because its peer delays it: the begin of a frame whose end has not come, or bytes
 * in the socket's queue that the peer does not read. Neither can be refused without ending a connection. So where the
 * pool is full, the connection that ends is not the next one that asks, but the one that holds most for longest, as
 * {@link Claims} says.
 *
 * <p>Each time that something is held is a {@link Hold} of its own. A hold is chosen to end, and not a connection, so
 * what the connection holds later is never taken for it.
 *
 * <p>A claim belongs to the connection's event loop. Other threads read {@link #hold()}.
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

    /** What is held from the time at which the peer begins to delay the connection until the peer has done its part. */
    static final class Hold {
        final Claim claim;
        final long sinceNanos;
        private volatile long bytes;

        /**
         * Bytes that were promised to others when this hold was chosen to end; 0 if it has not been chosen. Written by
         * {@link Claims}.
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

    /** @param end ends the connection, on its event loop; nothing is held for long after it */
    public Claim(Account account, Resource kind, EventLoop loop, Runnable end) {
        this.account = account;
        this.claims = account.claims(kind);
        this.loop = loop;
        this.end = end;
        this.charge = account.charge(kind);
    }

    /**
     * Sets the bytes that are held. Where the pool is full, other connections are ended for that, those of the same
     * event loop before this returns.
     *
     * @return false if no room can be made, if this claim is the greediest, or if the connection is over; nothing is
     *     changed then
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
            // another thread may be first to take the room that is made; then there is more to be made
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

    /** The peer has done its part: what is held now becomes another hold, which has waited only from here on. */
    public void renew(long nowNanos) {
        Hold held = hold;
        if (held != null) {
            hold = new Hold(this, held.bytes, nowNanos);
            spare(held);
        }
    }

    /** Gives everything back. A second time does nothing. */
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

    /** Gives everything back, as the connection is over. Nothing can be held afterwards. */
    public void close() {
        isOver = true;
        release();
        if (isKnown) {
            isKnown = false;
            claims.remove(this);
        }
    }

    /** Current hold; null while nothing is held. Any thread. */
    @Nullable
    Hold hold() {
        return hold;
    }

    /** Bytes that are held. Any thread. */
    public long bytes() {
        Hold held = hold;
        return held == null ? 0 : held.bytes;
    }

    /**
     * Key by which claims are compared: claims of one address share it; a connection without an address has a key of
     * its own.
     */
    Object peer() {
        Ledger.Address address = account.address;
        return address == null ? account : address;
    }

    boolean isOnLoopOf(Claim other) {
        return loop == other.loop;
    }

    /** Ends the connection, unless the chosen hold is held no more. Event loop only. */
    void endNow(Hold chosen) {
        try {
            if (hold == chosen) {
                end.run();
            }
        } catch (Throwable t) {
            // the failure is that of this connection, and not of the one that asks for room
            ThreadTools.report(t);
        } finally {
            if (hold == chosen) {
                close();
            }
            claims.onHoldEnded(chosen);
        }
    }

    /** Has the event loop call {@code endNow}. Any thread. */
    void endSoon(Hold chosen) {
        try {
            loop.execute(() -> endNow(chosen));
        } catch (RejectedExecutionException ended) {
            // all connections of the loop end with it
            claims.onHoldEnded(chosen);
        }
    }
}
