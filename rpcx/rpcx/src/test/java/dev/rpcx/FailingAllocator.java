package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;

/** An allocator that throws an OutOfMemoryError for the next direct buffers, as many as a test says. */
public final class FailingAllocator extends PooledByteBufAllocator {
    private volatile int fails;

    public FailingAllocator() {
        super(true);
    }

    public void failAtNext(int buffers) {
        fails = buffers;
    }

    public boolean hasFailed() {
        return fails == 0;
    }

    @Override
    public ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
        if (fails > 0) {
            fails--;
            throw new OutOfMemoryError("of this test");
        }
        return super.newDirectBuffer(initialCapacity, maxCapacity);
    }
}
