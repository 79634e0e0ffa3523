package dev.rpcx.internal.server;

import java.util.function.BooleanSupplier;

/**
 * Flag of a connection that has calls which no thread will end: the thread that was about to end such a call has
 * failed, since its stack or the memory was at its end. The thread may not be able to call any method any more, so it
 * marks the call by stores alone: one at the call and then {@link #isAny}. The connection's event loop finds the mark
 * at its next check, and ends the call.
 */
public final class LostCalls {
    /** Whether there may be lost calls; set after the mark at a call. */
    public volatile boolean isAny;

    private final Runnable look;

    /** @param look has the event loop check for lost calls now */
    public LostCalls(Runnable look) {
        this.look = look;
    }

    /**
     * Has the event loop check as soon as it can, and not only at its next check. May fail on a thread that has failed.
     */
    void requestCheck() {
        look.run();
    }

    /**
     * Looks for lost calls. Called by the event loop, if there may be any.
     *
     * @param ends ends those calls; it returns false if it cannot say yet which calls they are. Then, and if it throws,
     *     the calls are looked for again at the next check
     */
    void look(BooleanSupplier ends) {
        // The flag is cleared first, so that a call which is marked from here on is looked for again.
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
