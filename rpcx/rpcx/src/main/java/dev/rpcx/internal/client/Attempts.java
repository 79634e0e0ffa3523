package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import org.jspecify.annotations.Nullable;

/**
 * Records the failed attempts of one call, and decides whether the call makes another attempt. Also decides which
 * instance the next attempt avoids, and which error the caller gets.
 *
 * <p>An object is created when another attempt follows a failed one. Until then, a call has null instead of the object,
 * so a call whose first attempt succeeds allocates nothing here. Only the second of the two calls that a {@link Hedge}
 * makes has an object from the beginning, because that call's first attempt already avoids an instance. Only one thread
 * at a time uses an object: first the thread that sees an attempt end, afterwards the thread that makes the next
 * attempt.
 */
public final class Attempts {
    /**
     * Number of failed attempts at which a call gives up, if no byte of its latest attempt was sent. All failed
     * attempts of the call count, whether or not they were sent. If a byte of the latest attempt was sent,
     * {@link #MAX_SENT} applies instead.
     */
    static final int MAX_ATTEMPTS = 8;

    /** Maximum number of attempts that one call sends to servers. The first attempt counts too. */
    static final int MAX_SENT = 3;

    /** Number of the call's attempts that have failed, whether or not a byte of the attempt was sent. */
    private int failed;

    /** Number of the call's failed attempts of which at least one byte has possibly been sent to a server. */
    private int sent;

    /**
     * Whether a server has possibly executed one of the call's failed attempts. If so, the caller's error never says
     * that the call was not executed.
     */
    private boolean mayHaveRun;

    /**
     * Instance that refused the latest failed attempt that was sent; null if that attempt was not refused, or if there
     * was none. Failed attempts that were not sent do not change this field.
     */
    private @Nullable ClientAddress refusing;

    /**
     * Instance that the call's next attempt avoids if another instance has a connection ready; null if no instance is
     * avoided. A call avoids the instance to which the call has last sent an attempt. The second call of a
     * {@link Hedge} at first avoids the instance of the hedge's first call.
     */
    private @Nullable ClientAddress avoided;

    private Attempts() {}

    /**
     * Creates the object for the second of the two calls that a {@link Hedge} makes. The second call has made no
     * attempt yet.
     *
     * @param other instance that handles the first call, and that the second call avoids; null for none
     */
    static Attempts beside(@Nullable ClientAddress other) {
        Attempts none = new Attempts();
        none.avoided = other;
        return none;
    }

    /** Returns whether an attempt of a call has failed. If {@code earlier} is null, none has. */
    static boolean haveFailed(@Nullable Attempts earlier) {
        return earlier != null && earlier.failed > 0;
    }

    /** Returns the instance that a call's next attempt avoids if another instance is ready; null for none. */
    static @Nullable ClientAddress avoided(@Nullable Attempts earlier) {
        return earlier == null ? null : earlier.avoided;
    }

    /**
     * Decides whether a call makes another attempt after a failed one. Another attempt costs:
     *
     * <ul>
     *   <li>nothing, if no byte of the failed attempt was sent
     *   <li>one retry of the called method's {@link RefusalBudget}, if an instance has refused the failed attempt. This
     *       retry is spent even if no other instance is found afterwards.
     *   <li>one retry of the {@link RetryBudget}, if the failed attempt was sent and has failed in any other way
     * </ul>
     *
     * @param earlier the call's attempts before the failed one; null if there were none
     * @param upload stream that the failed attempt was to send to the server; null for none
     * @param used instance that was chosen for the failed attempt; null if none was chosen, or if the method returns a
     *     stream
     * @return all attempts of the call so far if another one follows; null if the caller gets the error, for example
     *     because there is no memory for the {@code Attempts} object
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
        // The object is created before a budget is charged, since there may be no memory for the object.
        Attempts all = earlier == null ? first() : earlier;
        if (all == null || !trySpend(steps, error, used)) {
            return null;
        }
        all.add(error, used);
        return all;
    }

    /**
     * Creates the object for a call whose first attempt has failed.
     *
     * @return null if there is no memory for the object; the call then makes no other attempt
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

    /** Returns whether another attempt is allowed for a call and could help, regardless of the budgets for retries. */
    static boolean isWorthAnother(
            @Nullable Attempts earlier,
            ClientSteps steps,
            RPCXException error,
            @Nullable StreamSender upload,
            @Nullable ClientAddress used) {
        if (!isSent(error)) {
            // No byte was sent, so the failed attempt has cost the servers nothing. If the call has subscribed to the
            // publisher of its stream, no other attempt follows, because a publisher is subscribed to only once.
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
            // The instance that refused would refuse again, so another one is needed. The budget also limits the
            // searches for another instance, so the budget is asked first.
            return route.refusals(steps.method.index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /**
     * Takes one retry from the {@link RetryBudget} for the second call of a {@link Hedge}.
     *
     * @return false if the budget has no retry left; the second call is then not made
     */
    static boolean mayHedge(ClientSteps steps) {
        return steps.route.budget().spend();
    }

    /**
     * Puts back the retry that {@link #mayHedge} has taken from the {@link RetryBudget}. Called if the hedge's second
     * call has ended without ever getting a slot of a connection, so that no byte of that call was sent.
     */
    static void giveBackHedge(ClientSteps steps) {
        steps.route.budget().giveBack();
    }

    /**
     * Counts a refusal as a failure of the instance that refused, if another instance has answered the next attempt. In
     * that case, the method's {@link RefusalBudget} also gets back the retry that the next attempt has cost.
     *
     * @param other instance that handled the attempt after the refused one
     * @param outcome how the attempt after the refused one has ended
     */
    void compare(ClientSteps steps, ClientAddress other, Health.Outcome outcome) {
        ClientAddress first = refusing;
        if (first != null && first != other && outcome.isAnswer()) {
            steps.route.refusals(steps.method.index).giveBack();
            first.refused();
        }
    }

    /**
     * Returns whether a byte of the attempt that ended with {@code error} has possibly been sent. The next attempt
     * avoids the failed attempt's instance only in this case.
     */
    static boolean isSent(RPCXException error) {
        return !LocalFailure.is(LocalFailure.Why.NOT_SENT, error);
    }

    private static boolean isRefusal(RPCXException error) {
        return Health.Outcome.isRefusal(error);
    }

    /** Returns whether a server has possibly executed the call that ended with {@code failure}. */
    static boolean mayHaveRun(Throwable failure) {
        return !(failure instanceof RPCXException known && known.executed() == RPCXException.Executed.NOT_EXECUTED);
    }

    // ---- the error that the caller gets

    /**
     * Returns the error that the caller of a failed call gets. The error says whether any attempt of the call has
     * possibly been executed.
     *
     * @param earlier the call's attempts before the last one; null if there were none
     * @param end error of the call's last attempt
     */
    static RPCXException callerError(@Nullable Attempts earlier, RPCXException end) {
        return callerError(end, earlier != null && earlier.mayHaveRun);
    }

    /**
     * Returns the exception that the caller of a failed call gets. If {@code end} is an RPCXException, the result says
     * whether any attempt has possibly been executed. Any other exception is returned unchanged.
     *
     * @param earlier the call's attempts before the last one; null if there were none
     * @param end exception with which the call's last attempt has ended
     */
    static Throwable callerError(@Nullable Attempts earlier, Throwable end) {
        return end instanceof RPCXException known ? callerError(earlier, known) : end;
    }

    /**
     * Returns the exception that the caller of a {@link Hedge} gets when one of the hedge's two calls has ended with
     * {@code end}. Any exception other than an RPCXException is returned unchanged.
     *
     * @param mayHaveRun whether the other call of the hedge has possibly been executed; if so, an RPCXException that is
     *     returned never says NOT_EXECUTED
     */
    static Throwable callerError(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? callerError(known, mayHaveRun) : end;
    }

    /**
     * Returns the error that the caller gets after a call's last attempt has ended with {@code end}.
     *
     * @param mayHaveRun whether another attempt has possibly been executed; if so, the result never says NOT_EXECUTED
     */
    private static RPCXException callerError(RPCXException end, boolean mayHaveRun) {
        RPCXException error = LocalFailure.asPublicException(end);
        return mayHaveRun && error.executed() == RPCXException.Executed.NOT_EXECUTED
                ? ClientCallErrors.withExecuted(error, RPCXException.Executed.MAYBE)
                : error;
    }
}
