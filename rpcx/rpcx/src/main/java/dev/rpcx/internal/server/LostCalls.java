package dev.rpcx.internal.server;

import java.util.function.BooleanSupplier;

/**
 * Notifies the event loop of a connection that calls may be lost. A call is lost if the thread that was about to end
 * the call has failed, usually for lack of stack or memory. Such a thread may be unable to call any method, so it first
 * writes two fields: it marks its call as lost, and after that it sets {@link #isAny}. Then the thread tries to call
 * {@link #requestCheck}; if the call of this method fails, the event loop ends the lost calls at its next check.
 */
public final class LostCalls {
    /**
     * Whether the connection may have lost calls. A thread marks a call as lost first, and sets this field after that.
     * The event loop clears the field first in {@link #endLost}, and looks for marks after that. If a mark were written
     * after the field, the event loop could clear the field before it can see the mark, and would not look again. The
     * field can also be set without a marked call.
     */
    public volatile boolean isAny;

    private final Runnable check;

    /**
     * Creates an object that knows of no lost calls yet: {@link #isAny} is false.
     *
     * @param check action that makes the event loop check for lost calls as soon as possible; if the event loop has
     *     ended, the action checks on the calling thread
     */
    public LostCalls(Runnable check) {
        this.check = check;
    }

    /**
     * Makes the event loop check for lost calls as soon as possible. May throw if the calling thread has too little
     * stack or memory left.
     */
    void requestCheck() {
        check.run();
    }

    /**
     * Clears {@link #isAny}, and runs an action that ends the lost calls. Called if {@code isAny} is set. The caller is
     * the event loop or, after the end of the event loop, a thread that holds the connection's lock.
     *
     * @param ends action that ends the lost calls; returns false if it does not know yet which calls are lost. If the
     *     action returns false or throws, {@code isAny} is set again
     */
    void endLost(BooleanSupplier ends) {
        // The flag is cleared before the action runs, so that the next check finds calls that are marked as lost while
        // the action runs.
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
