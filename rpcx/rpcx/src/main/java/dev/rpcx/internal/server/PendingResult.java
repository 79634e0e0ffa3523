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
 * Receives the result of a handler from the stage that the handler has returned. Only the first result counts, and none
 * after the call has been given up. Used for both wires. Thread-safe.
 */
public final class PendingResult extends Stages.Waiter {
    /** Time for which a call still waits for its stage after its caller has gone. The wait uses no thread. */
    static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of bytes that a stage holds for a call that has been given up, not counting the objects of the
     * call's request. Source: the sizes of the hook, of its entry and of the charge, 270 bytes in all with compressed
     * references.
     */
    public static final int LINGERING_BYTES = 512;

    /**
     * Number of stack frames that a thread must have left before it may take over the call in order to end it. If there
     * are fewer, the thread fails without taking over the call. Counted in the frames of
     * {@code ThreadTools.reserveStack}, which are smaller than most of the frames that are needed to end the call.
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

    /** Whether the thread that had the result took over the call, but failed before it ended the call. */
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
        // if the stack is nearly full, this fails before the call is taken over: then the call ends when its time is
        // over
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
     * Cancels the call that the stage is the future of, because the handler's own call is cancelled. Does nothing if
     * the stage is not the future of a call that this handler has made, or if anybody else waits for it. A stage of
     * another kind is not cancelled: that would skip what its maker has attached to it, for example to give a resource
     * back, and other calls may wait for it.
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
     * Leaves a charge for a call that has been given up although its handler's stage has not ended. The objects of the
     * call's request stay charged until the stage ends or is unreachable. Nothing stays charged if another call has
     * returned the same stage before: then nothing of this call remains at the stage, unless the handler itself has
     * attached the request to it.
     *
     * @param own stages that the interceptors have been given instead of the handler's stage
     * @param chargedBytes bytes that are charged for the objects of the request; this method takes over the charge
     * @param unchargedBytes further bytes that the parameters take, which have not been charged yet
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
     * Does what {@link #leaveCharge(Account, List, long, int, int)} does, for a call that its interceptors have ended
     * before the handler's stage has ended.
     */
    static boolean leaveOwnCharge(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        return leaveCharge(account, own, null, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Leaves the charge at the first hook that was attached to a stage for this call.
     *
     * @param last result for which the call waits, whose hook is used if the stages in {@code own} have attached none;
     *     null if the call waits for none
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
            // the call is over nevertheless, and its charge is released below
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
     * Returns the first hook that one of the given stages has attached to its source; null if there is none. The first
     * hook is at the handler's own stage.
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
