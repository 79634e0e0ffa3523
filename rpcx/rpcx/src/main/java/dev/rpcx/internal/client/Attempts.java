package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import org.jspecify.annotations.Nullable;

/**
 * The attempts of one call so far. Decides whether to make another attempt, which instance that attempt avoids, and
 * which error the caller gets. Used by blocking calls, asynchronous calls, streams and hedges.
 *
 * <p>Created when another attempt follows one that has failed; until then null stands for it, so a call with one
 * attempt allocates nothing. Only the second call of a hedge has an object from the beginning. Used by one thread at a
 * time: the one that sees the end of an attempt, then the one that makes the next attempt.
 */
public final class Attempts {
    /**
     * An attempt of which nothing was sent, for example because its connection was closing, is followed by another one
     * unless the call has had this many attempts, sent or not. Also the max number of instances that one attempt asks
     * for a slot.
     */
    static final int MAX_ATTEMPTS = 8;

    /** Maximum number of attempts of one call that are sent, including the first one. */
    static final int MAX_SENT = 3;

    /** Number of attempts that have failed, including those of which nothing was sent. */
    private int failed;

    /** Number of attempts that were sent and have failed. */
    private int sent;

    /**
     * Whether an earlier attempt may have been executed. If so, the call may have been executed, however the latest
     * attempt ends.
     */
    private boolean mayHaveRun;

    /** Instance that refused the previous attempt that was sent; null if none did. */
    private @Nullable ClientAddress refusing;

    /**
     * Instance that the next attempt avoids; null for none. It is the instance of the previous attempt that was sent.
     * Before a hedge's second call has sent an attempt, it is the instance that has the first call.
     */
    private @Nullable ClientAddress avoided;

    private Attempts() {}

    /**
     * Creates the object of a hedge's second call, before its first attempt.
     *
     * @param other instance that has the first call; null if no instance has it
     */
    static Attempts beside(@Nullable ClientAddress other) {
        Attempts none = new Attempts();
        none.avoided = other;
        return none;
    }

    /** Whether an attempt has failed. */
    static boolean haveFailed(@Nullable Attempts earlier) {
        return earlier != null && earlier.failed > 0;
    }

    /** Returns the instance that the next attempt avoids if there is another one; null for none. */
    static @Nullable ClientAddress avoided(@Nullable Attempts earlier) {
        return earlier == null ? null : earlier.avoided;
    }

    /**
     * Decides whether to make another attempt after a failed one, and spends its cost: from the method's
     * {@link RefusalBudget} if an instance has refused the failed attempt, even if no other instance is found; nothing
     * if nothing of the failed attempt was sent; otherwise from the {@link RetryBudget}. Without memory for the
     * returned object, there is no other attempt.
     *
     * @param earlier the attempts before the failed one; null if there were none
     * @param upload stream that the attempt was to send to the server; null for none
     * @param used instance that had the attempt; null if no instance had it
     * @return all attempts so far, if another one is to be made; null if the caller gets the error
     */
    public static @Nullable Attempts next(
            @Nullable Attempts earlier,
            ClientSteps steps,
            RPCXException error,
            @Nullable StreamSender upload,
            @Nullable ClientAddress used) {
        if (!isWorthAnother(earlier, steps, error, upload, used)) {
            return null;
        }
        // Created before anything is spent, since creating it may fail.
        Attempts all = earlier == null ? first() : earlier;
        if (all == null || !trySpend(steps, error, used)) {
            return null;
        }
        all.add(error, used);
        return all;
    }

    /**
     * Creates the object of a call whose first attempt has failed.
     *
     * @return null if there is no memory for it; the caller then gets the error
     */
    private static @Nullable Attempts first() {
        try {
            return new Attempts();
        } catch (OutOfMemoryError e) {
            return null;
        }
    }

    private void add(RPCXException error, @Nullable ClientAddress used) {
        failed++;
        mayHaveRun |= mayHaveRun(error);
        if (isSent(error)) {
            sent++;
            if (used != null) {
                refusing = isRefusal(error) ? used : null;
                avoided = used;
            }
        }
    }

    /** Returns whether another attempt makes sense. Does not ask the budgets. */
    static boolean isWorthAnother(
            @Nullable Attempts earlier,
            ClientSteps steps,
            RPCXException error,
            @Nullable StreamSender upload,
            @Nullable ClientAddress used) {
        if (!isSent(error)) {
            // Nothing was sent, so the attempt has cost no server anything. A call that has subscribed to its publisher
            // gets no other attempt, because a publisher is subscribed to only once.
            return (earlier == null ? 0 : earlier.failed) + 1 < MAX_ATTEMPTS
                    && (upload == null || !upload.hasPublisher());
        }
        if (steps.method.hasStream()) {
            return false;
        }
        int sent = (earlier == null ? 0 : earlier.sent) + 1;
        boolean executed = mayHaveRun(error);
        boolean overloaded = error.code() == RPCXException.Code.OVERLOADED;
        if (isRefusal(error)) {
            return sent == 1 && steps.route.hasOthers(used);
        }
        if (error.code() != RPCXException.Code.UNAVAILABLE && !overloaded || LocalFailure.isNoRoom(error)) {
            return false;
        }
        return (steps.method.isIdempotent || !executed)
                && (!overloaded || steps.route.hasOthers(used))
                && sent < MAX_SENT;
    }

    private static boolean trySpend(ClientSteps steps, RPCXException error, @Nullable ClientAddress used) {
        if (!isSent(error)) {
            return true;
        }
        Route route = steps.route;
        if (isRefusal(error)) {
            // The same instance would refuse again. The budget also limits the searches for another instance, so it is
            // asked first.
            return route.refusals(steps.method.index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /** Decides whether to make the second call of a hedge, and spends the cost of a retry if so. */
    static boolean mayHedge(ClientSteps steps) {
        return steps.route.budget().spend();
    }

    /** Gives back what {@link #mayHedge} has spent for a second call of which nothing was sent. */
    static void giveBackHedge(ClientSteps steps) {
        steps.route.budget().giveBack();
    }

    /**
     * Called when the attempt after a refused one has ended. If another instance has taken the call, the refusal counts
     * as a failure of the refusing instance, and the refusal budget gets the cost back.
     */
    void compare(ClientSteps steps, ClientAddress other, Health.Outcome outcome) {
        ClientAddress first = refusing;
        if (first != null && first != other && outcome.isAnswer()) {
            steps.route.refusals(steps.method.index).giveBack();
            first.refused();
        }
    }

    /**
     * Returns whether a byte of the attempt may have been sent. If so, the next attempt avoids its instance. If not,
     * for example because the connection was closing, the same instance may get the next attempt.
     */
    static boolean isSent(RPCXException error) {
        return !LocalFailure.is(LocalFailure.Why.NOT_SENT, error);
    }

    private static boolean isRefusal(RPCXException error) {
        return Health.Outcome.isRefusal(error);
    }

    /** Whether a call with this failure may have been executed. */
    static boolean mayHaveRun(Throwable failure) {
        return !(failure instanceof RPCXException known && known.executed() == RPCXException.Executed.NOT_EXECUTED);
    }

    // ---- the error that the caller gets

    /**
     * Returns the error that the caller of a failed call gets.
     *
     * @param earlier the attempts before the latest one; null if there were none
     * @param end error of the latest attempt
     */
    static RPCXException callerError(@Nullable Attempts earlier, RPCXException end) {
        return callerError(end, earlier != null && earlier.mayHaveRun);
    }

    /**
     * Returns the error for the caller if {@code end} is an RPCXException; returns any other exception unchanged.
     *
     * @param earlier the attempts before the latest one; null if there were none
     * @param end exception with which the latest attempt has ended
     */
    static Throwable callerError(@Nullable Attempts earlier, Throwable end) {
        return end instanceof RPCXException known ? callerError(earlier, known) : end;
    }

    /**
     * Returns the error for the caller of a hedged call if {@code end} is an RPCXException; returns any other exception
     * unchanged.
     *
     * @param mayHaveRun whether the other call of the hedge may have been executed
     */
    static Throwable callerError(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? callerError(known, mayHaveRun) : end;
    }

    /**
     * Returns the error for the caller.
     *
     * @param mayHaveRun whether another attempt may have been executed; the error then never says NOT_EXECUTED
     */
    private static RPCXException callerError(RPCXException end, boolean mayHaveRun) {
        RPCXException error = LocalFailure.asPublicException(end);
        return mayHaveRun && error.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(error.code(), error.getMessage(), RPCXException.Executed.MAYBE, error)
                : error;
    }
}
