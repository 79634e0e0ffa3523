package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * What a connection holds because its peer lets it wait: the begin of a frame whose end has not come, or bytes in the
 * socket's queue that the peer does not read. No such thing can be refused without ending a connection, so where the
 * pool is full it is not the next one that ends but the one that holds most for longest, as {@link Claims} says.
 *
 * <p>Each time that something is held is a {@link Hold} of its own. Whoever has been chosen to end is a hold, so what
 * the connection holds later is never taken for it.
 *
 * <p>It belongs to the connection's event loop. Other threads read {@link #hold()}.
 */
final class Claim {
    private final Account account;
    private final Claims claims;
    private final EventLoop loop;
    private final Runnable end;
    private final Charge charge;
    private boolean isKnown;
    private boolean isOver;
    private volatile @Nullable Hold hold;

    /** What is held from the time at which the peer began to let it wait until it has done its part. */
    static final class Hold {
        final Claim claim;
        final long sinceNanos;
        private volatile long bytes;

        /** So much has been promised to others when this was chosen to end; 0 if it has not been. By {@link Claims}. */
        volatile long promisedBytes;

        private Hold(Claim claim, long bytes, long sinceNanos) {
            this.claim = claim;
            this.bytes = bytes;
            this.sinceNanos = sinceNanos;
        }

        long bytes() {
            return bytes;
        }

        boolean isChosen() {
            return promisedBytes != 0;
        }
    }

    /** @param end ends the connection, on its event loop; nothing is held for long after it */
    Claim(Account account, Resource kind, EventLoop loop, Runnable end) {
        this.account = account;
        this.claims = account.claims(kind);
        this.loop = loop;
        this.end = end;
        this.charge = account.charge(kind);
    }

    /**
     * Changes what is held to this much; where the pool is full, others are ended for it, those of the same event loop
     * before this returns.
     *
     * @return false if no room can be made, if this one is the greediest, or if it is over; nothing is changed then
     */
    boolean set(long wanted, long nowNanos) {
        if (wanted == 0) {
            release();
            return true;
        }
        if (isOver) {
            return false;
        }
        while (!charge.set(wanted)) {
            // room that is made may be taken by another thread first; then there is more to be made
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

    /** The peer has done its part: what is held now is another hold, and has waited from here on only. */
    void renew(long nowNanos) {
        Hold held = hold;
        if (held != null) {
            hold = new Hold(this, held.bytes, nowNanos);
            spare(held);
        }
    }

    /** Gives everything back. A second time does nothing. */
    void release() {
        Hold held = hold;
        if (held != null) {
            hold = null;
            charge.release();
            spare(held);
        }
    }

    private void spare(Hold held) {
        if (held.isChosen()) {
            claims.isOver(held);
        }
    }

    /** Gives everything back, as the connection is over. Nothing can be held afterwards. */
    void close() {
        isOver = true;
        release();
        if (isKnown) {
            isKnown = false;
            claims.remove(this);
        }
    }

    /** Null while nothing is held. Any thread. */
    @Nullable
    Hold hold() {
        return hold;
    }

    /** How much is held. Any thread. */
    long bytes() {
        Hold held = hold;
        return held == null ? 0 : held.bytes;
    }

    /** Whoever shares the peer's address is one with it; a peer without an address stands for itself. */
    Object peer() {
        Ledger.Address address = account.address;
        return address == null ? account : address;
    }

    boolean isOnLoopOf(Claim other) {
        return loop == other.loop;
    }

    /** Ends the connection, unless what was chosen is held no more. On the event loop. */
    void endNow(Hold chosen) {
        try {
            if (hold == chosen) {
                end.run();
            }
        } catch (Throwable t) {
            // it is the fault of this connection, and not of the one that asks for room
            ThreadTools.report(t);
        } finally {
            if (hold == chosen) {
                close();
            }
            claims.isOver(chosen);
        }
    }

    /** Has the event loop do that. Any thread. */
    void endSoon(Hold chosen) {
        try {
            loop.execute(() -> endNow(chosen));
        } catch (RejectedExecutionException ended) {
            // all connections of the loop end with it
            claims.isOver(chosen);
        }
    }
}
