package dev.rpcx;

import io.netty.buffer.AbstractByteBufAllocator;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledHeapByteBuf;

/**
 * Counts the buffers of the sockets of one simulated process. All buffers are on the heap, which is good enough for a
 * simulation.
 */
final class SimAllocator extends AbstractByteBufAllocator {
    private long bytes;
    private int buffers;

    /** Returns the number of buffers that have not been released. */
    int buffers() {
        return buffers;
    }

    long bytes() {
        return bytes;
    }

    @Override
    protected ByteBuf newHeapBuffer(int initialCapacity, int maxCapacity) {
        return new Counted(initialCapacity, maxCapacity);
    }

    @Override
    protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
        return new Counted(initialCapacity, maxCapacity);
    }

    @Override
    public boolean isDirectBufferPooled() {
        return false;
    }

    private final class Counted extends UnpooledHeapByteBuf {
        Counted(int initialCapacity, int maxCapacity) {
            super(SimAllocator.this, initialCapacity, maxCapacity);
            buffers++;
        }

        @Override
        protected byte[] allocateArray(int initialCapacity) {
            bytes += initialCapacity;
            return super.allocateArray(initialCapacity);
        }

        @Override
        protected void freeArray(byte[] array) {
            bytes -= array.length;
            super.freeArray(array);
        }

        @Override
        protected void deallocate() {
            buffers--;
            super.deallocate();
        }
    }
}
