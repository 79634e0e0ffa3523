package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.io.LoopThread;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * A call for which no thread blocks. After the call has ended and no longer uses its slot, the event loop tells the
 * caller. If the call fails before it is sent, another thread can tell the caller.
 */
abstract class AsyncCall extends LoopThread.Untold {
    private static final RPCXException UNTOLD = LocalFailure.noRoom("no memory was left when the call ended");

    final ClientSteps steps;

    /**
     * Time that the call had left when the request of its latest attempt was written, in nanoseconds. The value is
     * copied from the slot, since the slot can belong to another call when the value is needed.
     */
    private long givenNanos;

    /**
     * The {@link ClientCall#serial} of this call, which distinguishes the call from other calls in the same slot. The
     * value is copied from the slot, since the slot can belong to another call when the value is needed.
     */
    private long serial;

    AsyncCall(ClientSteps steps) {
        this.steps = steps;
    }

    /**
     * Copies from the slot the values that are needed after the slot has been released. Called before the call is sent.
     */
    public final void copyFromSlot(ClientCall slot) {
        givenNanos = slot.givenNanos;
        serial = slot.serial;
    }

    /**
     * Decides what the end of the latest attempt says of the instance {@code used}. Records the result at the instance,
     * and returns it: see {@link ClientSteps#ended}.
     *
     * @param earlier the call's attempts before the latest one; null if there were none
     * @param used instance that handled the latest attempt
     * @param error null if the attempt has succeeded
     */
    final Health.Outcome ended(
            @Nullable Attempts earlier, ClientAddress used, @Nullable RPCXException error, long deadlineNanos) {
        return steps.ended(earlier, used, error, givenNanos, deadlineNanos, serial);
    }

    @Nullable
    Object decode(ByteBuf reply) {
        return steps.reader.read(reply);
    }

    /** Returns the receiver of the items if the result of the call is a stream; otherwise null. */
    @Nullable
    StreamReceiver receiver() {
        return null;
    }

    /** Called when an item of the result stream has arrived, or the first part of an item. */
    void arrived() {}

    /**
     * Called when the call has failed, before its slot is released. Not called if the call has failed because its reply
     * cannot be read. If nothing of the request was sent, the slot still contains the request.
     */
    void beforeSlotRelease(ClientCall slot, RPCXException error) {}

    /**
     * Ends the latest attempt of the call with a result or an error. Called exactly once for each attempt that was
     * passed to {@link ClientCall#sendAsync}. After an error, another attempt can follow. An exception of user code is
     * logged, and does not affect other calls.
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
     * Tells the caller how the call has ended, after {@link #end} has failed. The caller might have been told already.
     * If this method fails too, the event loop gives the caller the error {@link #UNTOLD} later.
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
