package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Charge that stays when a call has been given up and its handler's future has not ended: the future may hold what the
 * request was read into. The charge is given back once, when the future ends, or when nobody can reach the future any
 * more. Thread-safe.
 */
public final class LingeringCharge extends PhantomReference<Object> {
    /** Number of stack frames that giving back takes. */
    private static final int RESERVED_FRAMES = 50;

    private final Ledger ledger;
    private final Account account;
    private final long objectBytes;
    private final int places;
    private boolean isOver;

    /** @param holder object that the future alone holds, and only as long as it has not ended */
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

    /** Gives back what is held. A second time does nothing. */
    public void end() {
        // a thread whose stack is nearly at its end fails here, where nothing has changed: the garbage collector finds
        // this charge later
        ThreadTools.reserveStack(RESERVED_FRAMES);
        synchronized (this) {
            if (isOver) {
                return;
            }
            isOver = true;
        }
        // each step is taken also where the one before it fails, since nobody comes here a second time
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
