package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.io.LoopThread;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * A call for which no thread blocks. The event loop tells its caller of the end, after the call has released its slot.
 */
abstract class AsyncCall extends LoopThread.Untold {
    private static final RPCXException UNTOLD = LocalFailure.noRoom("no memory was left when the call ended");

    final ClientSteps steps;

    /** Remaining time of the call when it was sent. Copied from the slot, which may have another call by now. */
    private long givenNanos;

    /**
     * Serial number of this call among the calls that had its slot: see {@link ClientCall#serial}. Copied from the
     * slot, which may have another call by now.
     */
    private long serial;

    AsyncCall(ClientSteps steps) {
        this.steps = steps;
    }

    /** Copies the values that are needed after the slot has been released. Called before the call is sent. */
    public final void copyFromSlot(ClientCall slot) {
        givenNanos = slot.givenNanos;
        serial = slot.serial;
    }

    /**
     * Records the end of the latest attempt, as {@link ClientSteps#ended} does.
     *
     * @param error null for success
     */
    final Health.Outcome ended(
            @Nullable Attempts earlier, ClientAddress used, @Nullable RPCXException error, long deadlineNanos) {
        return steps.ended(earlier, used, error, givenNanos, deadlineNanos, serial);
    }

    @Nullable
    Object decode(ByteBuf reply) {
        return steps.reader.read(reply);
    }

    /** Returns the receiver of the items if the call's result is a stream; otherwise null. */
    @Nullable
    StreamReceiver receiver() {
        return null;
    }

    /** Called when an item of the stream has arrived, or the first part of an item. */
    void arrived() {}

    /**
     * Called when the call has failed, before its slot is released. If nothing of the request was sent, the slot still
     * contains the request.
     */
    void beforeSlotRelease(ClientCall slot, RPCXException error) {}

    /**
     * Ends the call. Called exactly once. Exceptions of user code are logged, and do not affect the other calls of the
     * connection.
     */
    public final void end(@Nullable Object value, @Nullable RPCXException error) {
        try {
            if (error == null) {
                succeed(value);
            } else {
                fail(error);
            }
        } catch (Throwable e) {
            if (e instanceof OutOfMemoryError) {
                MemoryReserve.use();
            }
            endAgain(value, error);
            CallbackFailures.log(e);
        } finally {
            LoopThread.forgetInterrupt();
        }
    }

    /**
     * Tells the caller of the end, after {@link #end} has failed. The caller may have been told already. If this fails
     * too, the event loop tells the caller later.
     */
    private void endAgain(@Nullable Object value, @Nullable RPCXException error) {
        try {
            tellCaller(value, error);
        } catch (Throwable stillNoMemory) {
            if (Thread.currentThread() instanceof LoopThread loop) {
                loop.tellLater(this);
            }
        }
    }

    @Override
    public final boolean endUntold() {
        try {
            tellCaller(null, UNTOLD);
            return true;
        } catch (Throwable stillNoMemory) {
            return false;
        }
    }

    abstract void succeed(@Nullable Object value);

    abstract void fail(RPCXException error);

    /** Tells the caller how the call has ended. Does nothing if the caller has been told already. */
    abstract void tellCaller(@Nullable Object value, @Nullable RPCXException error);
}
