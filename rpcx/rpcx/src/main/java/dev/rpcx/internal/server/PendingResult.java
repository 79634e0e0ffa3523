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
 * Waits for the stage that a handler has returned, and passes the result on to the handler's call. Only the first
 * result counts, and none after the call has been given up. Used for both wires. Thread-safe.
 */
public final class PendingResult extends Stages.Waiter {
    /**
     * Time for which the server still waits for a handler's stage after the caller has gone. No thread is blocked
     * meanwhile.
     */
    static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of bytes that RPCX leaves at an unfinished stage when it gives up the stage's call. The objects of
     * the call's request are not included. Source: RPCX's callback at the stage, the list of the stage's waiters in
     * {@link Stages}, and the charge take 270 bytes together, with compressed references.
     */
    public static final int LINGERING_BYTES = 512;

    /**
     * Number of stack frames that a thread must have free before it takes over a call in order to end it. With fewer,
     * the thread fails without taking the call over. Counted in frames of {@code ThreadTools.reserveStack}, which are
     * smaller than most of the frames that are needed to end the call.
     */
    private static final int RESERVED_FRAMES = 100;

    /** Call whose handler has returned a stage that had not ended yet. */
    interface Call {
        /**
         * Called at most once, when the stage has ended or could not be waited for. Any thread may call this.
         *
         * @param value result of the handler; null if {@code thrown} is not null
         * @param thrown why there is no result; null if there is one
         */
        void onResult(@Nullable Object value, @Nullable Throwable thrown);
    }

    private final CompletionStage<?> stage;
    private final LostCalls lost;
    private @Nullable Call call;

    /** Whether the thread that received the result took over the call, but failed before it had ended the call. */
    private volatile boolean isLost;

    public PendingResult(Call call, CompletionStage<?> stage, LostCalls lost) {
        this.call = call;
        this.stage = stage;
        this.lost = lost;
    }

    /**
     * Starts to wait for the stage. The call may get the result before this method returns. If the stage throws, the
     * call gets the exception as its result.
     */
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

    /** Returns whether the result has come, but the thread that received it failed to end the call. */
    boolean isLost() {
        return isLost;
    }

    private synchronized @Nullable Call take() {
        Call waiting = call;
        call = null;
        return waiting;
    }

    /**
     * Stops waiting for the stage. A result that comes later is ignored.
     *
     * @return false if the result has come, or this method has been called before
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
     * Cancels the stage if it is the future of an RPC that the handler has made. The future is not cancelled if another
     * call waits for it too. A stage of another kind is never cancelled: that would skip what its maker has attached to
     * it, for example to give a resource back, and other code may wait for it.
     *
     * @param given context of the handler's own call, which is being cancelled
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
     * Keeps the objects of a given-up call's request charged, since the handler's unfinished stage may refer to them.
     * The charge is released when the stage ends or becomes unreachable. If another call has returned the same stage
     * before, nothing stays charged, because RPCX has attached nothing of this call to the stage.
     *
     * @param own stages that interceptors got in place of the handler's stage
     * @param chargedBytes bytes that are already charged for the objects of the request; this method takes over the
     *     charge
     * @param unchargedBytes bytes of the handler's arguments that are not charged yet
     * @param metadataBytes bytes that the metadata of the request take
     * @return true if some of these bytes could not be charged; the call's place then has to stay charged instead
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
     * Does what {@link #leaveCharge(Account, List, long, int, int)} does, for a call that its interceptors have ended.
     * The handler's stage had not ended then, and the call does not wait for it.
     */
    static boolean leaveOwnCharge(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        return leaveCharge(account, own, null, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Lets the first {@link Stages.Hook} that was attached to a stage for this call hold the charge until that stage
     * ends.
     *
     * @param last waits for the call's result; its hook is used if the stages in {@code own} have attached none; null
     *     if the call waits for no result
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
     * Returns the first {@link Stages.Hook} that one of the given stages has attached to its source; null if there is
     * none. The first one is at the stage that the handler itself has returned.
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
