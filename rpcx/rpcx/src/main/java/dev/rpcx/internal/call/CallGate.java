package dev.rpcx.internal.call;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * Knows whether the interceptors of a client have let a call go on, so that the call can be sent. If they fail before
 * that, the gate is closed, and the call is known as not executed: an interceptor that goes on with it later, for
 * example on another thread, is refused. Thread-safe.
 */
public final class CallGate {
    private static final AtomicIntegerFieldUpdater<CallGate> STATE =
            AtomicIntegerFieldUpdater.newUpdater(CallGate.class, "state");

    private static final int OPEN = 0;
    private static final int PASSED = 1;
    private static final int CLOSED = 2;

    /**
     * One of the three constants, {@link #OPEN} at first. The step from there is atomic, since an interceptor can go on
     * with the call on one thread and fail on another one.
     */
    private volatile int state;

    /**
     * Lets the call go on, as often as an interceptor likes.
     *
     * @throws IllegalStateException if the gate is closed
     */
    public void pass() {
        if (state != PASSED && !STATE.compareAndSet(this, OPEN, PASSED) && state == CLOSED) {
            throw new IllegalStateException("the call has ended, since an interceptor failed before it was sent");
        }
    }

    /**
     * Closes the gate, unless the call has gone on.
     *
     * @return whether the gate is closed, so that the call has not been sent and never will be
     */
    public boolean close() {
        return STATE.compareAndSet(this, OPEN, CLOSED) || state == CLOSED;
    }
}
