package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;

/** Has no memory for a socket's next buffers, as often as a test says. */
final class FailingAllocator extends PooledByteBufAllocator {
    private volatile int fails;

    FailingAllocator() {
        super(true);
    }

    void failAtNext(int buffers) {
        fails = buffers;
    }

    boolean hasFailed() {
        return fails == 0;
    }

    @Override
    protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
        if (fails > 0) {
            fails--;
            throw new OutOfMemoryError("of this test");
        }
        return super.newDirectBuffer(initialCapacity, maxCapacity);
    }
}
