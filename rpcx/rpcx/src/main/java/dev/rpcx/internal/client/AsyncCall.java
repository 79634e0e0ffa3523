package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.MemoryReserve;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.io.LoopThread;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * A call that no thread blocks for. Its caller is told of the end on the event loop, once the call has released the
 * slot.
 */
abstract class AsyncCall extends LoopThread.Untold {
    private static final RPCXException UNTOLD = LocalFailure.noRoom("no memory was left when the call ended");

    final ClientSteps steps;

    /** Time left to the call when it was sent: a copy from the slot, which may have another call by now. */
    private long givenNanos;

    /** Number of the use of the slot that the call was sent with: a copy, for the same reason. */
    private long serial;

    AsyncCall(ClientSteps steps) {
        this.steps = steps;
    }

    /** Copies from the slot what is needed once the slot may have another call. Called before the call is sent. */
    public final void copyFromSlot(ClientCall slot) {
        givenNanos = slot.givenNanos;
        serial = slot.serial;
    }

    /** As {@link ClientSteps#ended}, of the latest attempt; {@code error} is null for success. */
    final Health.Outcome ended(
            @Nullable Attempts earlier, ClientAddress used, @Nullable RPCXException error, long deadlineNanos) {
        return steps.ended(earlier, used, error, givenNanos, deadlineNanos, serial);
    }

    @Nullable
    Object decode(ByteBuf reply) {
        return steps.reader.read(reply);
    }

    /** Receiver of the items of a stream; null for a call that brings none. */
    @Nullable
    StreamReceiver receiver() {
        return null;
    }

    /** Called when an item of the stream, or the first part of one, has arrived. */
    void arrived() {}

    /**
     * Called when the call has failed and is about to lose the slot, by which others see that the call has not ended.
     * If nothing of the request has left, the slot still has it.
     */
    void beforeSlotRelease(ClientCall slot, RPCXException error) {}

    /**
     * Ends the call, once. An exception of the user's code that is told of the end is no concern of the connection,
     * whose other calls go on.
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
     * Tells the caller of the end if the first try has failed, be it while the caller was told or before that, such as
     * while the outcome was counted.
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

    /** Tells the caller how the call has ended, and does nothing else. Does nothing if the caller has been told. */
    abstract void tellCaller(@Nullable Object value, @Nullable RPCXException error);
}
