package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import org.jspecify.annotations.Nullable;

/**
 * The attempts of one call so far, and the decision whether there is another: by the error, by whether the call may
 * have run, by how many attempts there were, and by the budgets. It also decides which instance the next attempt
 * avoids, and what the caller is told. Blocking calls, asynchronous ones, streams and hedges all ask here.
 *
 * <p>A call has such an object only once an attempt has failed that is followed by another, so a call that succeeds at
 * once, or fails for good, allocates none; null stands for that. The second call of a hedge has one from its begin. The
 * thread that hears of the end of an attempt has it, and then whoever makes the next attempt: never two at a time.
 */
public final class Attempts {
    /**
     * An attempt that finds its connection closing sends nothing, and its call goes to another connection, unless the
     * call has had this many attempts. One attempt asks at most this many instances for a slot.
     */
    static final int MAX_ATTEMPTS = 8;

    /** Max attempts of one call that have left this side, including the first one. */
    static final int MAX_SENT = 3;

    /** Number of attempts that have failed, including those of which nothing has left. */
    private int failed;

    /** Number of attempts that have left and failed. */
    private int sent;

    /** An earlier attempt may have been executed, so the call may have been, however the latest attempt ends. */
    private boolean mayHaveRun;

    /** Instance that has refused the previous attempt that left; null if none has. */
    private @Nullable ClientAddress refusing;

    /**
     * Instance to avoid: it has the other call of the hedge under way, or had the previous attempt that left. Null for
     * none.
     */
    private @Nullable ClientAddress avoided;

    private Attempts() {}

    /**
     * Attempts of the second call of a hedge, before the first of them.
     *
     * @param other instance that has the first call under way; null if none has
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

    /** Instance that the next attempt avoids where there is another; null for none. */
    static @Nullable ClientAddress avoided(@Nullable Attempts earlier) {
        return earlier == null ? null : earlier.avoided;
    }

    /**
     * Decides whether to make another attempt after one that has failed. Spends from the budgets what that attempt
     * costs. Where no memory is left for this object there is no other attempt.
     *
     * @param earlier the attempts before the one that has failed; null if there were none
     * @param upload stream that the attempt was to send to the server; null for none
     * @param used instance that had the attempt; null if none had
     * @return all attempts so far, if there is to be another; null if the caller is to be told of the error
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
        // made before anything is spent for the next attempt
        Attempts all = earlier == null ? first() : earlier;
        if (all == null || !isPaidFor(steps, error, used)) {
            return null;
        }
        all.add(error, used);
        return all;
    }

    /** @return null where no memory is left: the caller is told of the error then, as where no attempt follows */
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
        if (hasLeft(error)) {
            sent++;
            if (used != null) {
                refusing = isRefusal(error) ? used : null;
                avoided = used;
            }
        }
    }

    /** The part of {@link #next} that does not depend on budgets: asking spends nothing. */
    static boolean isWorthAnother(
            @Nullable Attempts earlier,
            ClientSteps steps,
            RPCXException error,
            @Nullable StreamSender upload,
            @Nullable ClientAddress used) {
        if (!hasLeft(error)) {
            // This side knows that nothing has left, so the attempt has cost no server anything. But a publisher is
            // subscribed to only once.
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

    private static boolean isPaidFor(ClientSteps steps, RPCXException error, @Nullable ClientAddress used) {
        if (!hasLeft(error)) {
            return true;
        }
        Route route = steps.route;
        if (isRefusal(error)) {
            // The refusing instance would refuse again, so the call needs another one. The budget is asked first, since
            // it bounds how often all instances are looked at.
            return route.refusals(steps.method.index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /** Whether to make a second call beside the first, which costs as much as another attempt. Spends that. */
    static boolean mayHedge(ClientSteps steps) {
        return steps.route.budget().spend();
    }

    /** Gives back what {@link #mayHedge} has spent for a call of which nothing has left. */
    static void giveBackHedge(ClientSteps steps) {
        steps.route.budget().giveBack();
    }

    /**
     * A call that one instance refuses and another one takes counts as failed at the first; a call that both refuse
     * does not. Called when the attempt after the refused one has ended.
     */
    void compare(ClientSteps steps, ClientAddress other, Health.Outcome outcome) {
        ClientAddress first = refusing;
        if (first != null && first != other && outcome.isAnswer()) {
            steps.route.refusals(steps.method.index).giveBack();
            first.refused();
        }
    }

    /**
     * Whether a byte of the attempt may have left. If so, the next attempt avoids the instance of this one, which could
     * not or would not take the call, where there is another. An attempt of which nothing has left says nothing of its
     * instance: one that only closes its connection may have the next attempt.
     */
    static boolean hasLeft(RPCXException error) {
        return !LocalFailure.is(LocalFailure.Why.NOT_SENT, error);
    }

    private static boolean isRefusal(RPCXException error) {
        return Health.Outcome.isRefusal(error);
    }

    /** Whether what has failed so may have been executed. */
    static boolean mayHaveRun(Throwable failure) {
        return !(failure instanceof RPCXException known && known.executed() == RPCXException.Executed.NOT_EXECUTED);
    }

    // ---- what the caller is told

    /**
     * Error that the caller of a failed call is told.
     *
     * @param earlier the attempts before the one that {@code end} has ended; null if there were none
     */
    static RPCXException told(@Nullable Attempts earlier, RPCXException end) {
        return told(end, earlier != null && earlier.mayHaveRun);
    }

    /** The same for whatever has ended the call: an RPCXException as above, anything else unchanged. */
    static Throwable told(@Nullable Attempts earlier, Throwable end) {
        return end instanceof RPCXException known ? told(earlier, known) : end;
    }

    /** The same, where {@code mayHaveRun} says whether the other call of a hedge may have been executed. */
    static Throwable told(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? told(known, mayHaveRun) : end;
    }

    /**
     * @param mayHaveRun an earlier attempt of the call may have been executed: the error then never says NOT_EXECUTED
     */
    private static RPCXException told(RPCXException end, boolean mayHaveRun) {
        RPCXException error = LocalFailure.asPublicException(end);
        return mayHaveRun && error.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(error.code(), error.getMessage(), RPCXException.Executed.MAYBE, error)
                : error;
    }
}
