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
 * Receives the result that a handler brings later: the first, once, and none when its call has been given up. Nothing
 * of that call is then left at the stage: see {@link Stages}. Calls of both wires use it. Thread-safe.
 */
public final class PendingResult extends Stages.Waiter {
    /** Time for which a stage is waited for after its caller has gone: the wait holds no thread. */
    static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * Maximum number of bytes that stay with a stage which is given up, whatever its request was: the hook on it, the
     * entry that finds the hook, and the charge itself. Source: the sizes of their objects, 270 bytes with compressed
     * references.
     */
    public static final int LINGERING_BYTES = 512;

    /**
     * Number of stack frames that the end of a call may take, most of which are larger than those of
     * {@code ThreadTools.reserveStack}. A thread that completes a future first goes as deep, so that it fails, if it
     * does, before it has taken the call.
     */
    private static final int RESERVED_FRAMES = 100;

    /** A call whose handler has returned before it had a result. */
    interface Call {
        /** Called when the result has come, on any thread. At most once. */
        void onResult(@Nullable Object value, @Nullable Throwable thrown);
    }

    private final CompletionStage<?> stage;
    private final LostCalls lost;
    private @Nullable Call call;

    /** Whether the call was taken, and the thread that brought its result has failed over it. */
    private volatile boolean isLost;

    public PendingResult(Call call, CompletionStage<?> stage, LostCalls lost) {
        this.call = call;
        this.stage = stage;
        this.lost = lost;
    }

    /** Begins to wait: the result may come within this method. */
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
        // a thread whose stack is nearly at its end fails here, where nothing has been taken: the call ends at its time
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
                // the call is found at the next check
            }
            throw t;
        }
    }

    /** Says whether the result has come and has not ended the call, nor ever will. */
    boolean isLost() {
        return isLost;
    }

    private synchronized @Nullable Call take() {
        Call waiting = call;
        call = null;
        return waiting;
    }

    /** Stops waiting for the result. @return false if it has come */
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
     * Passes the cancel of a call on to a call that was made for it, where nobody else waits for that one. A stage of
     * another kind is not cancelled: what its maker has attached to it, to give something back, would be passed over,
     * and other calls may wait for the same stage.
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
     * Leaves a charge for a call that has been given up: what its request was read into stays charged until the stage
     * ends, or until nobody can reach the stage any more. Where another call has returned the same stage before,
     * nothing of this call is left there, and nothing stays charged: a stage that was there before the call does not
     * hold its request, unless the handler itself has attached that to it.
     *
     * @param own stages that the call's interceptors have been given instead of the handler's
     * @param chargedBytes bytes that the call has been charged for what its request was read into, and has handed over
     * @param unchargedBytes bytes that the parameters take beside that, which need no charge while the call has a place
     * @param metadataBytes bytes that the request's metadata take
     * @return whether a place of a call has to stay charged, as nothing else can be
     */
    boolean leave(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        // the thread that ended the stage may have failed before it came to the hook
        if (Stages.isDone(stage)) {
            account.release(Resource.OBJECT_BYTES, chargedBytes);
            return false;
        }
        return leave(account, own, this, chargedBytes, unchargedBytes, metadataBytes);
    }

    /**
     * As {@link #leave(Account, List, long, int, int)}, for a call that its interceptors have ended while the handler's
     * stage has not.
     */
    static boolean leaveOwn(
            Account account, List<DetachableStage> own, long chargedBytes, int unchargedBytes, int metadataBytes) {
        return leave(account, own, null, chargedBytes, unchargedBytes, metadataBytes);
    }

    /** @param last awaits the stage whose hook counts where none of the others has one; null for none */
    private static boolean leave(
            Account account,
            List<DetachableStage> own,
            @Nullable PendingResult last,
            long chargedBytes,
            int unchargedBytes,
            int metadataBytes) {
        long charged = chargedBytes;
        Stages.Hook hook = null;
        LingeringCharge left = null;
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
                left = account.leave(hook, charged, isCharged ? 0 : 1);
            }
        } catch (Throwable noMemory) {
            // the call is over all the same, and nobody else would give back what it has handed over
            ThreadTools.report(noMemory);
        }
        if (hook == null || left == null) {
            account.release(Resource.OBJECT_BYTES, charged);
            return false;
        }
        hook.leave(left);
        return !isCharged;
    }

    /**
     * Hook that is on a handler's own stage because of this call, rather than on a stage that interceptors have made:
     * the first that one of the given stages has on its source. Null for none.
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
