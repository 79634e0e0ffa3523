package dev.rpcx.internal.server;

import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.LingeringCharge;
import dev.rpcx.internal.ledger.Resource;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Receives the result of a handler from the stage that the handler has returned. Only the first result counts. If the
 * call has been given up, no result counts, and nothing of the call remains at the stage: see {@link Stages}. Calls of
 * both wires use this class. Thread-safe.
 */
public final class PendingResult extends Stages.Waiter {
    /** Time for which a call still waits for its stage after its caller has gone. The wait uses no thread. */
    static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of bytes that a stage holds for a call that has been given up, not counting the objects into which
     * the call's request was read. These bytes are those of three objects: the hook at the stage, the entry by which
     * the hook is found, and the charge itself. Source: the sizes of the three objects, 270 bytes in all with
     * compressed references.
     */
    public static final int LINGERING_BYTES = 512;

    /**
     * Number of stack frames that a thread may need to end the call, after the thread has completed the future for
     * which the call waits. Most of these frames are larger than those by which {@code ThreadTools.reserveStack}
     * counts. The thread first checks that its stack has this much room. Only then does it take over the call, in order
     * to end it. If there is less room, the thread fails, and has not taken over the call.
     */
    private static final int RESERVED_FRAMES = 100;

    /** Call whose handler has returned a stage which had not ended. */
    interface Call {
        /**
         * Called at most once, when the result has come. Any thread may call this.
         *
         * @param value the result; null if {@code thrown} is not null
         * @param thrown why there is no result; null if there is one
         */
        void onResult(@Nullable Object value, @Nullable Throwable thrown);
    }

    private final CompletionStage<?> stage;
    private final LostCalls lost;
    private @Nullable Call call;

    /**
     * Whether the thread that brought the result has taken over the call, and has then failed before it ended the call.
     */
    private volatile boolean isLost;

    public PendingResult(Call call, CompletionStage<?> stage, LostCalls lost) {
        this.call = call;
        this.stage = stage;
        this.lost = lost;
    }

    /** Begins to wait for the result. The result may come before this method returns. */
    void begin() {
        try {
            await(stage);
        } catch (Throwable t) {
            try {
                leave();
            } finally {
                accept(null, t);
            }
        }
    }

    @Override
    public void accept(@Nullable Object value, @Nullable Throwable thrown) {
        // a thread whose stack is nearly full fails here, before it has taken over the call: the call then ends when
        // its time is over
        ThreadTools.reserveStack(RESERVED_FRAMES);
        Call waiting = take();
        if (waiting == null) {
            return;
        }
        try {
            waiting.onResult(value, thrown);
        } catch (Throwable t) {
            isLost = true;
            lost.isAny = true;
            try {
                lost.requestCheck();
            } catch (Throwable again) {
                // the next check for lost calls finds the call
            }
            throw t;
        }
    }

    /** Returns whether the result has come, but has not ended the call and will not end it. */
    boolean isLost() {
        return isLost;
    }

    private synchronized @Nullable Call take() {
        Call waiting = call;
        call = null;
        return waiting;
    }

    /**
     * Stops waiting for the result.
     *
     * @return true if the result had not come; false if it has come
     */
    boolean giveUp() {
        if (take() == null) {
            return false;
        }
        leave();
        return true;
    }

    synchronized boolean isOpen() {
        return call != null;
    }

    /**
     * Cancels a call that the handler has made, because the handler's own call is cancelled. This is done only if the
     * stage is the future of such a call, and nobody else waits for it. A stage of another kind is not cancelled, for
     * two reasons. Code that the stage's maker has attached to the stage, for example to give a resource back, would be
     * skipped. And other calls may wait for the same stage.
     *
     * @param given context of the handler's own call
     */
    void cancel(HandledContext given) {
        if (stage instanceof DetachableStage seen) {
            seen.cancelSource(given);
        } else {
            cancel(stage, this, given);
        }
    }

    static void cancel(CompletionStage<?> stage, Stages.Waiter waiter, HandledContext given) {
        if (stage instanceof CallFuture<?> made && made.isOnlyFor(given) && !Stages.hasOthers(stage, waiter)) {
            made.cancel(true);
        }
    }

    /**
     * Makes the charge that remains for a call that has been given up although its handler's stage has not ended. The
     * objects into which the call's request was read stay charged until the stage ends, or until nobody can reach the
     * stage any more. There is one exception: if another call has returned the same stage before, nothing stays
     * charged. In that case nothing of this call remains at the stage. If the stage existed before this call, it does
     * not hold the call's request either, unless the handler itself has attached the request to the stage.
     *
     * @param own stages that the call's interceptors have been given instead of the handler's stage
     * @param chargedBytes bytes that the call was charged for the objects into which its request was read; the call has
     *     handed this charge over to this method
     * @param unchargedBytes further bytes that the parameters take; they need no charge while the call has a place
     * @param metadataBytes bytes that the metadata of the request take
     * @return whether the call's place has to stay charged, because the bytes cannot be charged
     */
    boolean leaveCharge(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        // the stage may have ended without calling the hook, if the thread that ended it has failed
        if (Stages.isDone(stage)) {
            account.release(Resource.OBJECT_BYTES, chargedBytes);
            return false;
        }
        return leaveCharge(account, own, this, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Makes the charge that remains, as {@link #leaveCharge(Account, List, long, int, int)} does, for a call that its
     * interceptors have ended although the handler's stage has not ended.
     */
    static boolean leaveOwnCharge(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        return leaveCharge(account, own, null, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Makes the charge that remains. It is held by the first hook that was attached to a stage for this call.
     *
     * @param last result for which the call waits, at a stage; null if the call waits for none. If none of the stages
     *     in {@code own} has attached a hook, the hook that was attached for this result holds the charge
     */
    private static boolean leaveCharge(
            Account account,
            List<DetachableStage> own,
            @Nullable PendingResult last,
            long chargedBytes,
            int unchargedBytes,
            int metadataBytes) {
        long charged = chargedBytes;
        Stages.Hook hook = null;
        LingeringCharge lingering = null;
        boolean isCharged = false;
        try {
            hook = hook(own);
            if (hook == null && last != null) {
                hook = last.hook(last.stage);
            }
            if (hook != null) {
                long uncharged = LINGERING_BYTES + (long) metadataBytes + unchargedBytes;
                isCharged = account.tryCharge(Resource.OBJECT_BYTES, uncharged);
                charged += isCharged ? uncharged : 0;
                lingering = account.leaveCharge(hook, charged, isCharged ? 0 : 1);
            }
        } catch (Throwable noMemory) {
            // the call is over nevertheless; the charge that it has handed over is released below, since no other code
            // would release it
            ThreadTools.report(noMemory);
        }
        if (hook == null || lingering == null) {
            account.release(Resource.OBJECT_BYTES, charged);
            return false;
        }
        hook.holdCharge(lingering);
        return !isCharged;
    }

    /**
     * Returns the first hook that one of the given stages has attached for this call. Each of these stages attaches the
     * hook to its source, which is the stage whose result it waits for. The source of the first hook is the handler's
     * own stage, and not a stage that interceptors have made. Returns null if none of the given stages has attached a
     * hook.
     */
    private static Stages.@Nullable Hook hook(List<DetachableStage> own) {
        for (DetachableStage seen : own) {
            Stages.Hook hook = seen.hook();
            if (hook != null) {
                return hook;
            }
        }
        return null;
    }
}
