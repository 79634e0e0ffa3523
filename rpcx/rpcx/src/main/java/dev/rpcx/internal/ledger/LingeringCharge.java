package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Charge that stays after a call has been given up, since the future of its handler may still hold the objects of the
 * request. Released once: when the future ends, or when it becomes unreachable. Thread-safe.
 */
public final class LingeringCharge extends PhantomReference<Object> {
    /** Largest number of stack frames that releasing the charge needs. */
    private static final int RESERVED_FRAMES = 50;

    private final Ledger ledger;
    private final Account account;
    private final long objectBytes;
    private final int places;
    private boolean isOver;

    /**
     * Creates a charge for amounts that the account has been charged already.
     *
     * @param holder object that only the future refers to, until the future ends
     */
    public LingeringCharge(
            Ledger ledger,
            Account account,
            Object holder,
            ReferenceQueue<Object> collected,
            long objectBytes,
            int places) {
        super(holder, collected);
        this.ledger = ledger;
        this.account = account;
        this.objectBytes = objectBytes;
        this.places = places;
    }

    /** Releases what is held. A second call does nothing. */
    public void end() {
        // throws before anything has changed if the stack is nearly exhausted; the charge is then released when the
        // future becomes unreachable
        ThreadTools.reserveStack(RESERVED_FRAMES);
        synchronized (this) {
            if (isOver) {
                return;
            }
            isOver = true;
        }
        // each step runs even if the one before it fails, since a second call does nothing
        try {
            ledger.over(this);
        } finally {
            try {
                account.release(Resource.OBJECT_BYTES, objectBytes);
            } finally {
                account.release(Resource.CALLS, places);
            }
        }
    }
}
