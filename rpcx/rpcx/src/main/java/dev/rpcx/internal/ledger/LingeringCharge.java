package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Charge that stays after a call has been given up, because its handler's future has not ended: the future may still
 * hold the objects into which the request was read. The charge is released once, when the future ends, or when nobody
 * can reach the future any more. Thread-safe.
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
     * Creates a charge that takes over amounts for which the account has been charged already.
     *
     * @param holder object that only the future holds, and only as long as the future has not ended
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
        // if the stack of this thread is nearly exhausted, this call throws before anything has changed. Then the
        // charge is released later, once the garbage collector has found that nobody can reach the future
        ThreadTools.reserveStack(RESERVED_FRAMES);
        synchronized (this) {
            if (isOver) {
                return;
            }
            isOver = true;
        }
        // each step runs even if the step before it fails, since a second call of this method does nothing
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
