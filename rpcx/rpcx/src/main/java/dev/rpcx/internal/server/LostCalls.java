package dev.rpcx.internal.server;

import java.util.function.BooleanSupplier;

/**
 * Flag that says whether a connection may have lost calls. A lost call is one that no thread will end. The thread that
 * was about to end it has failed, because its stack was full or there was no memory. Such a thread may not be able to
 * call any method any more, so it reports the call only by storing values: first it marks the call as lost, then it
 * sets {@link #isAny}. The connection's event loop finds the flag at its next check, and ends the call.
 */
public final class LostCalls {
    /** Whether there may be lost calls. Set after the call itself has been marked as lost. */
    public volatile boolean isAny;

    private final Runnable check;

    /**
     * Creates a flag that is not set.
     *
     * @param check makes the event loop check for lost calls as soon as it can
     */
    public LostCalls(Runnable check) {
        this.check = check;
    }

    /**
     * Has the event loop check for lost calls as soon as it can, instead of at its next check. If this method is called
     * by a thread that has failed, it may fail too.
     */
    void requestCheck() {
        check.run();
    }

    /**
     * Ends the lost calls by means of {@code ends}. Called by the event loop if there may be lost calls.
     *
     * @param ends ends the lost calls; returns false if it cannot say yet which calls are lost. If it returns false or
     *     throws, the next check looks for these calls again
     */
    void endLost(BooleanSupplier ends) {
        // The flag is cleared before the calls are ended: if a call is marked from now on, the next check looks for it.
        isAny = false;
        boolean isDone = false;
        try {
            isDone = ends.getAsBoolean();
        } finally {
            if (!isDone) {
                isAny = true;
            }
        }
    }
}
