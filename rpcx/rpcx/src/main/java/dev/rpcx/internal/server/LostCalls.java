package dev.rpcx.internal.server;

import java.util.function.BooleanSupplier;

/**
 * Flag that says whether a connection may have lost calls. A call is lost if the thread that was about to end it has
 * failed, because its stack was full or there was no memory. Such a thread may not be able to call any method, so it
 * only stores two values: first it marks the call as lost, then it sets {@link #isAny}. The event loop ends the call at
 * its next check.
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
     * Makes the event loop check for lost calls as soon as it can. May throw if the calling thread has no stack or
     * memory left.
     */
    void requestCheck() {
        check.run();
    }

    /**
     * Ends the lost calls by means of {@code ends}. Called on the event loop if there may be lost calls.
     *
     * @param ends ends the lost calls; returns false if it cannot say yet which calls are lost. If it returns false or
     *     throws, {@link #isAny} is set again
     */
    void endLost(BooleanSupplier ends) {
        // The flag is cleared first, so that calls that are marked from now on are found by the next check.
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
