package dev.rpcx;

import java.util.function.BooleanSupplier;

/**
 * Says that a connection has calls which nobody will end: the thread that was about to has failed, since its stack or the
 * memory was at its end. Such a thread may not be able to call anything any more, so it leaves its word by stores alone:
 * one at the call and then {@link #isAny}. The connection's event loop finds it at its next look, and ends the call.
 */
final class LostCalls {
    /** Set behind what is said of a call. */
    volatile boolean isAny;

    private final Runnable look;

    /** @param look has the event loop look now */
    LostCalls(Runnable look) {
        this.look = look;
    }

    /** Has the event loop look as soon as it can, and not at its next look only. May fail where the thread cannot. */
    void tell() {
        look.run();
    }

    /**
     * The event loop looks, where there may be any.
     *
     * @param ends ends those calls; it gives false where it cannot say yet which they are. Then, and where it throws,
     *     they are looked for again at the next look
     */
    void look(BooleanSupplier ends) {
        // first: who sets it from here on is looked for again
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
