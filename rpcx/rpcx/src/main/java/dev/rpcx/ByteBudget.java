package dev.rpcx;

import java.util.concurrent.atomic.AtomicLong;

/** How many bytes of one kind a server holds for all its connections together. What no call can grow beyond is what keeps it alive. */
final class ByteBudget {
    /** Below this a message is not counted: there can be as many as there are slots, and counting would cost more than it saves. */
    static final int COUNTED_BYTES = 4 * 1024;

    /** Room for some messages of the largest size, also where the heap is small. */
    private static final long LEAST = 4L * Wire.MAX_MESSAGE_BYTES;

    private final long most;
    private final AtomicLong held = new AtomicLong();

    private ByteBudget(long most) {
        this.most = most;
    }

    /** A share of the heap. */
    static ByteBudget ofHeap(int divisor) {
        return new ByteBudget(Math.max(LEAST, Runtime.getRuntime().maxMemory() / divisor));
    }

    /** @return false if the server holds too much already; then nothing is to be released */
    boolean hold(long bytes) {
        if (held.addAndGet(bytes) <= most) {
            return true;
        }
        held.addAndGet(-bytes);
        return false;
    }

    void release(long bytes) {
        held.addAndGet(-bytes);
    }

    long held() {
        return held.get();
    }
}
