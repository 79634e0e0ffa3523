package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.concurrent.RejectedExecutionException;

/**
 * What a connection holds because its peer lets it wait: the begin of a frame whose end has not come, or bytes in the
 * socket's queue that the peer does not read. No such thing can be refused without ending a connection, so where the
 * pool is full it is not the next one that ends but the one that holds most for longest, as {@link Claims} says.
 *
 * <p>It belongs to the connection's event loop. Other threads read {@link #bytes()} and {@link #sinceNanos()}.
 */
final class Claim {
    /** Room that is made may be taken by another thread first. */
    private static final int MAX_TRIES = 3;

    private final Account account;
    private final Claims claims;
    private final EventLoop loop;
    private final Runnable end;
    private final Charge charge;
    private boolean isKnown;
    private volatile long bytes;
    private volatile long sinceNanos;

    /** @param end ends the connection, on its event loop */
    Claim(Account account, Resource kind, EventLoop loop, Runnable end) {
        this.account = account;
        this.claims = account.claims(kind);
        this.loop = loop;
        this.end = end;
        this.charge = account.charge(kind);
    }

    /**
     * Changes what is held to this much; where the pool is full, others are ended for it.
     *
     * @return false if no room can be made; nothing is changed then
     */
    boolean set(long wanted, long nowNanos) {
        long held = charge.held();
        if (wanted == 0) {
            release();
            return true;
        }
        boolean isTaken = charge.set(wanted);
        for (int i = 0; i < MAX_TRIES && !isTaken; i++) {
            isTaken = claims.makeRoom(wanted - held + Charge.STEP_BYTES, nowNanos) && charge.set(wanted);
        }
        if (!isTaken) {
            return false;
        }
        if (!isKnown) {
            isKnown = true;
            claims.add(this);
        }
        if (held == 0) {
            sinceNanos = nowNanos;
        }
        bytes = wanted;
        return true;
    }

    /** The peer has done its part: what is held now has waited from here on only. */
    void renew(long nowNanos) {
        sinceNanos = nowNanos;
    }

    /** Gives everything back. A second time does nothing. */
    void release() {
        if (bytes != 0) {
            bytes = 0;
            charge.release();
        }
    }

    /** Gives everything back, as the connection is over. */
    void close() {
        release();
        if (isKnown) {
            isKnown = false;
            claims.remove(this);
        }
    }

    /** How much is held. Any thread. */
    long bytes() {
        return bytes;
    }

    /** Since when the peer has let it wait. Any thread. */
    long sinceNanos() {
        return sinceNanos;
    }

    /** Whoever shares the peer's address is one with it; a peer without an address stands for itself. */
    Object peer() {
        Ledger.Address address = account.address;
        return address == null ? account : address;
    }

    /** Has the event loop end the connection, unless nothing is held any more by then. Any thread. */
    void endSoon() {
        try {
            loop.execute(() -> {
                try {
                    if (bytes != 0) {
                        end.run();
                    }
                } finally {
                    claims.isOver(this);
                }
            });
        } catch (RejectedExecutionException ended) {
            // all connections of the loop end with it
            claims.isOver(this);
        }
    }
}
