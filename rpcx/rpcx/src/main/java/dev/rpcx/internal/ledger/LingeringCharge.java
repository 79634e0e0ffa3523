package dev.rpcx.internal.ledger;

import dev.rpcx.internal.ThreadTools;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * Keeps the charge for a call that has ended although the future of its handler has not completed. For example, the
 * call has been given up. Until this future completes, the future can still hold the objects of the request. If the
 * future never completes, the ledger can release the charge after the garbage collector has found the future
 * unreachable. The ledger looks for such charges when it adds a {@code LingeringCharge}, and when it has no room for
 * another charge. This class is thread-safe.
 */
public final class LingeringCharge extends PhantomReference<Object> {
    /** Number of stack frames that must be free before {@link #end} begins to release the charge. */
    private static final int RESERVED_FRAMES = 50;

    private final Ledger ledger;
    private final Account account;
    private final long objectBytes;
    private final int places;

    /**
     * Whether the charge has been released. Guarded by {@code this}, since the thread that ends the future and a thread
     * that releases old charges of the ledger can both call {@link #end}.
     */
    private boolean isOver;

    /**
     * Creates a charge for {@code objectBytes} and {@code places}, for which the account has already been charged.
     *
     * @param holder object to which only the handler's future refers until the future completes. So the holder becomes
     *     unreachable if the future does, and the garbage collector then adds this charge to {@code collected}
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

    /** Releases the charge. A second call does nothing. */
    public void end() {
        // this throws if the stack is nearly exhausted, before anything has changed; the charge is then released when
        // the future becomes unreachable
        ThreadTools.reserveStack(RESERVED_FRAMES);
        synchronized (this) {
            if (isOver) {
                return;
            }
            isOver = true;
        }
        // Each step runs even if the step before has failed. A second call of this method does nothing, so it could not
        // make up for a missed step.
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
