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
 * Waits for the stage that a handler or its first interceptor has returned, and passes the stage's result to the
 * handler's call. The call gets at most one result, and none if {@link #giveUp} has returned true. Used for both wires.
 * Thread-safe.
 */
public final class PendingResult extends Stages.Waiter {
    /**
     * Maximum time, in nanoseconds, for which the server still waits for a handler's stage when nobody needs the result
     * any more, for example after a cancel or the deadline. No thread is blocked while the server waits.
     */
    static final long MAX_GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Number of bytes charged for RPCX's own objects that stay in memory if a call is given up before its stage ends.
     * These objects are RPCX's callback at the stage, the list of the stage's waiters in {@link Stages}, and the
     * charge. With compressed references, the objects take 270 bytes together. Without, they take more, but at most
     * this number.
     */
    public static final int MAX_LINGERING_BYTES = 512;

    /**
     * Free stack that a thread must have before it takes over a call in order to end it. With less free stack, the
     * thread fails before it takes the call over. The unit is one frame of {@code ThreadTools.reserveStack}. Most
     * frames of the methods that end a call are larger, so this much stack has room for fewer than 100 of those frames.
     */
    private static final int RESERVED_FRAMES = 100;

    /** Call whose handler or first interceptor has returned a stage. The stage may have ended already. */
    interface Call {
        /**
         * Gives the call its result. Called at most once for each stage, on any thread, when the stage has ended or
         * waiting for the stage has failed.
         *
         * @param value result of the stage; null if {@code thrown} is not null. If the method has interceptors, the
         *     value can be another stage, for which the call then has to wait
         * @param thrown why there is no result; null if there is one
         */
        void onResult(@Nullable Object value, @Nullable Throwable thrown);
    }

    private final CompletionStage<?> stage;
    private final LostCalls lost;

    /**
     * Call that waits for the result; null when a thread has taken the call over. Guarded by {@code this}. These
     * threads can try to take the call over:
     *
     * <ul>
     *   <li>the thread that ends the stage
     *   <li>the thread that runs {@link #begin}, if {@code begin} cannot wait for the stage
     *   <li>the event loop, if it gives the call up
     * </ul>
     *
     * <p>Only the first of these threads ends the call. Tested by
     * {@code WireAtOnceTest.whatMeetsByChanceEndsEachCallOnceAndLeavesNothing}.
     */
    private @Nullable Call call;

    /**
     * Whether the thread that received the result has taken over the call, but has failed to end the call. That thread
     * writes this field before it sets {@link LostCalls#isAny}. The event loop reads {@code isAny} first, and then this
     * field.
     */
    private volatile boolean isLost;

    public PendingResult(Call call, CompletionStage<?> stage, LostCalls lost) {
        this.call = call;
        this.stage = stage;
        this.lost = lost;
    }

    /**
     * Starts to wait for the stage. The call may get its result before this method returns. If the stage throws an
     * exception here, that exception is the call's result.
     */
    void begin() {
        try {
            await(stage);
        } catch (Throwable t) {
            try {
                stopWaiting();
            } finally {
                accept(null, t);
            }
        }
    }

    @Override
    public void accept(@Nullable Object value, @Nullable Throwable thrown) {
        // If the stack is nearly full, reserveStack throws an error before this thread takes the call over. If begin()
        // has called this method and passes the error on, the call is marked as lost, and the event loop ends it.
        // Otherwise the call usually ends when its time is over.
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
                // The request for a check has failed, usually for lack of stack or memory. The event loop's next check
                // still finds this call, because lost.isAny is set.
            }
            throw t;
        }
    }

    /** Returns whether the thread that received the result has taken over the call, but has failed to end the call. */
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
     * @return false if the result has come already, or if this method has been called before
     */
    boolean giveUp() {
        if (take() == null) {
            return false;
        }
        stopWaiting();
        return true;
    }

    synchronized boolean isOpen() {
        return call != null;
    }

    /**
     * Cancels the stage if the stage is the future of an RPC that the handler has made, and no other call or code needs
     * that future. If the stage is a {@link DetachableStage}, this method checks the source of that stage instead, and
     * cancels the source under the same conditions. A stage of any other kind is never cancelled. A cancel of such a
     * stage would skip the code that the stage's maker has attached to it, for example to release a resource. Other
     * code may also wait for such a stage.
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
     * Hands the charge for the objects of the call's request over to the stage that the handler has returned. Called
     * when the call is given up. The unfinished stage may still refer to the objects, so the charge stays until the
     * stage ends or becomes unreachable. If the stage has ended already, the charge is released at once.
     *
     * <p>If several calls return the same stage, RPCX attaches its callback to the stage only for the first of these
     * calls. This callback holds the charge of the first call. The other calls hand over no charge at this stage.
     *
     * @param own stages that the call's interceptors got in place of the stages of the handler or of later interceptors
     * @param chargedBytes number of bytes already charged for the objects of the request; this method takes over the
     *     charge
     * @param unchargedBytes number of bytes of the handler's arguments that are not charged yet
     * @param metadataBytes number of bytes that the metadata of the request take
     * @return true if some of these bytes could not be charged; the caller then has to keep the call's place charged
     */
    boolean handOverCharge(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        // The charge is handed over to RPCX's callback at the stage, which releases it. If the stage has ended, the
        // thread that ended it may have failed before it called the callback. The charge would then stay until the
        // stage is unreachable, so an ended stage gets no charge.
        if (Stages.isDone(stage)) {
            account.release(Resource.OBJECT_BYTES, chargedBytes);
            return false;
        }
        return handOverCharge(account, own, this, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Does the same as {@link #handOverCharge(Account, List, long, int, int)} for a call that has ended before the
     * handler's stage, and that does not wait for this stage. Either the result of such a call came from an
     * interceptor, or the call was lost: see {@link LostCalls}.
     */
    static boolean handOverChargeToOwn(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        return handOverCharge(account, own, null, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * Hands the charge for a call's request over to a {@link Stages.Hook}, RPCX's callback at a stage. The hook
     * releases the charge when the stage ends. The charge goes to the first hook that a stage in {@code own} has
     * attached to its source. If there is no such hook, the charge goes to the hook of {@code last}. Without any hook,
     * the charge is released at once.
     *
     * @param last object that waited for the call's result until the call was given up; null if there is none
     */
    private static boolean handOverCharge(
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
                long uncharged = MAX_LINGERING_BYTES + (long) metadataBytes + unchargedBytes;
                isCharged = account.tryCharge(Resource.OBJECT_BYTES, uncharged);
                charged += isCharged ? uncharged : 0;
                lingering = account.addLingeringCharge(hook, charged, isCharged ? 0 : 1);
            }
        } catch (Throwable noMemory) {
            // The call is over even if no charge could be handed over. The code below then releases all bytes that have
            // been charged for the request.
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
     * Returns the first {@link Stages.Hook} that one of the stages in {@code own} has attached to its source; null if
     * none of them has attached a hook. The source of a {@link DetachableStage} is the stage that the
     * {@code DetachableStage} replaces. The stage of the handler itself, if that stage has not ended, is usually the
     * source of the first stage in {@code own}.
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
