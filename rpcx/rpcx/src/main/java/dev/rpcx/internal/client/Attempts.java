package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import org.jspecify.annotations.Nullable;

/**
 * The attempts of one call so far, and the decision whether to make another attempt. The decision depends on the error,
 * on whether the call may have been executed, on the number of attempts, and on the budgets. This class also decides
 * which instance the next attempt avoids, and which error the caller gets. Blocking calls, asynchronous calls, streams
 * and hedges all use it.
 *
 * <p>A call gets such an object only when an attempt has failed and another attempt follows. So a call with only one
 * attempt allocates no such object, and null stands for it. Only the second call of a hedge has an object from its
 * beginning. Only one thread at a time uses the object: first the thread that learns that an attempt has ended, then
 * the thread that makes the next attempt.
 */
public final class Attempts {
    /**
     * An attempt that finds its connection closing sends nothing. The call then goes to another connection, unless it
     * has had this many attempts, counting those of which nothing was sent. This is also the maximum number of
     * instances that one attempt asks for a slot.
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

    /** Instance that refused the previous attempt that was sent; null if no instance refused that attempt. */
    private @Nullable ClientAddress refusing;

    /**
     * Instance that the next attempt avoids; null for none. It is the instance of the previous attempt that was sent.
     * Before the second call of a hedge has sent an attempt, it is the instance that has the first call.
     */
    private @Nullable ClientAddress avoided;

    private Attempts() {}

    /**
     * Creates the object of the second call of a hedge, before the first attempt of that call.
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

    /** Returns the instance that the next attempt avoids if there is another one; null if it avoids none. */
    static @Nullable ClientAddress avoided(@Nullable Attempts earlier) {
        return earlier == null ? null : earlier.avoided;
    }

    /**
     * Decides whether to make another attempt after one that has failed, and spends what the new attempt costs. If an
     * instance has refused the failed attempt, the cost is spent from the method's {@link RefusalBudget}, even if no
     * other instance is found then. Otherwise it is spent from the {@link RetryBudget}. If nothing of the failed
     * attempt was sent, the new one costs nothing. If there is no memory for the object that is returned, there is no
     * other attempt.
     *
     * @param earlier the attempts before the one that has failed; null if there were none
     * @param upload stream that the attempt was to send to the server; null for none
     * @param used instance that had the attempt; null if no instance had it
     * @return all attempts so far, if another attempt is to be made; null if the caller gets the error
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
        // The object is created before anything is spent for the next attempt, since creating it may fail.
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
     * @return null if there is no memory for it: the caller then gets the error, as if no attempt were to follow
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

    /** Decides whether another attempt is worthwhile, as far as that does not depend on the budgets. Spends nothing. */
    static boolean isWorthAnother(
            @Nullable Attempts earlier,
            ClientSteps steps,
            RPCXException error,
            @Nullable StreamSender upload,
            @Nullable ClientAddress used) {
        if (!isSent(error)) {
            // This side knows that nothing was sent, so the attempt has cost no server anything. But a publisher is
            // subscribed to only once, so a call that has subscribed to one gets no other attempt.
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
            // The refusing instance would refuse again, so the call needs another instance. The budget is asked before
            // the search for one, since the budget limits how often all instances are searched.
            return route.refusals(steps.method.index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /**
     * Decides whether to make the second call of a hedge beside the first. If so, spends the cost of a retry from the
     * budget.
     */
    static boolean mayHedge(ClientSteps steps) {
        return steps.route.budget().spend();
    }

    /** Gives back what {@link #mayHedge} has spent for a second call of which nothing was sent. */
    static void giveBackHedge(ClientSteps steps) {
        steps.route.budget().giveBack();
    }

    /**
     * Compares a refused attempt with the attempt after it. If another instance takes the call, the refusal counts as a
     * failure of the refusing instance, and the refusal budget gets the cost of the retry back. Otherwise, for example
     * if both instances refuse the call, neither happens. Called when the attempt after the refused one has ended.
     */
    void compare(ClientSteps steps, ClientAddress other, Health.Outcome outcome) {
        ClientAddress first = refusing;
        if (first != null && first != other && outcome.isAnswer()) {
            steps.route.refusals(steps.method.index).giveBack();
            first.refused();
        }
    }

    /**
     * Whether a byte of the attempt may have been sent. If so, the instance of the attempt could not or would not take
     * the call, and the next attempt avoids that instance if there is another one. An attempt of which nothing was sent
     * says nothing about its instance. For example, if nothing was sent because the connection was closing, the same
     * instance may get the next attempt.
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
     * Returns what the caller gets if its call has ended with {@code end}. An RPCXException becomes the error for the
     * caller. Anything else is returned unchanged.
     *
     * @param earlier the attempts before the latest one; null if there were none
     * @param end exception with which the latest attempt has ended
     */
    static Throwable callerError(@Nullable Attempts earlier, Throwable end) {
        return end instanceof RPCXException known ? callerError(earlier, known) : end;
    }

    /**
     * Returns what the caller of a hedged call gets. An RPCXException becomes the error for the caller. Anything else
     * is returned unchanged.
     *
     * @param mayHaveRun whether the other call of the hedge may have been executed
     */
    static Throwable callerError(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? callerError(known, mayHaveRun) : end;
    }

    /**
     * Returns the error for the caller.
     *
     * @param mayHaveRun whether another attempt of the call may have been executed: the error then never says
     *     NOT_EXECUTED
     */
    private static RPCXException callerError(RPCXException end, boolean mayHaveRun) {
        RPCXException error = LocalFailure.asPublicException(end);
        return mayHaveRun && error.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(error.code(), error.getMessage(), RPCXException.Executed.MAYBE, error)
                : error;
    }
}
