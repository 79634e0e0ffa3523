package dev.rpcx;

import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/** Whoever waits for a call without blocking. Told on the event loop, once the slot is free. */
abstract class AsyncCall extends LoopThread.Untold {
    private static final RPCXException UNTOLD = OwnEnd.noRoom("no memory was left when the call ended");

    final ClientMethod method;

    /** As in the slot that it was sent with, which may be another call's by now: what was left of its time. */
    private long givenNanos;

    /** The same: that use of the slot. */
    private long serial;

    AsyncCall(ClientMethod method) {
        this.method = method;
    }

    /** Before the call is sent. */
    final void sentWith(ClientCall slot) {
        givenNanos = slot.givenNanos;
        serial = slot.serial;
    }

    /** What the end of this call says of the instance that had it; {@code error} is null for success. */
    final Health.Outcome outcome(@Nullable RPCXException error, long deadlineNanos) {
        return method.outcome(error, givenNanos, deadlineNanos, serial);
    }

    /** When it was sent. */
    final long begunNanos(long deadlineNanos) {
        return deadlineNanos - givenNanos;
    }

    @Nullable
    Object decode(ByteBuf reply) {
        return method.decode(reply);
    }

    /** Where items of a stream go; null for a call that brings none. */
    @Nullable
    StreamReceiver receiver() {
        return null;
    }

    /** An item of the stream is there. */
    void arrived() {}

    /**
     * The call has failed, and is about to lose the slot that says of it that it has not ended. Where nothing of it has
     * left, the request is still there.
     */
    void losesSlot(ClientCall slot, RPCXException error) {}

    /**
     * Ends it, once. What the user's code throws when it is told is not the connection's affair, whose other calls go
     * on.
     */
    final void end(@Nullable Object value, @Nullable RPCXException error) {
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

    /** Also where what comes before has failed, such as the account of its address. */
    private void endAgain(@Nullable Object value, @Nullable RPCXException error) {
        try {
            endAnyway(value, error);
        } catch (Throwable stillNoMemory) {
            if (Thread.currentThread() instanceof LoopThread loop) {
                loop.tellLater(this);
            }
        }
    }

    @Override
    final boolean endUntold() {
        try {
            endAnyway(null, UNTOLD);
            return true;
        } catch (Throwable stillNoMemory) {
            return false;
        }
    }

    abstract void succeed(@Nullable Object value);

    abstract void fail(RPCXException error);

    /** Tells whoever waits how the call has ended, and does nothing else. Nothing where that has been told. */
    abstract void endAnyway(@Nullable Object value, @Nullable RPCXException error);
}
