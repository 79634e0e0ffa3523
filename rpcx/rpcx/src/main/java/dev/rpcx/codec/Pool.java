package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Pool of up to 64 scratch objects in an array. The id of a thread decides which index of the array the thread uses.
 * The objects are not in a thread-local variable, because virtual threads come and go, and each would create another
 * object. An object that has been taken belongs to the thread that took it. If a thread finds the object at its index
 * taken, it creates another one, and never waits.
 *
 * <p>An object stays in the array while it is taken. To take the reference out and put it back would be two stores of a
 * reference, which cost G1 additional work, and they would go into a cache line that threads share.
 */
final class Pool<T extends Pool.Scratch> {
    private static final int CELLS = 64;

    private static final AtomicIntegerFieldUpdater<Scratch> TAKEN =
            AtomicIntegerFieldUpdater.newUpdater(Scratch.class, "taken");

    private final AtomicReferenceArray<@Nullable T> cells = new AtomicReferenceArray<>(CELLS);
    private final Supplier<T> fresh;

    Pool(Supplier<T> fresh) {
        this.fresh = fresh;
    }

    /** Object that a pool can hold. A new object counts as taken. */
    abstract static class Scratch {
        volatile int taken = 1;
    }

    T take() {
        T object = cells.getAcquire(cell());
        return object != null && TAKEN.compareAndSet(object, 0, 1) ? object : fresh.get();
    }

    void give(T object) {
        TAKEN.lazySet(object, 0);
        int cell = cell();
        if (cells.getPlain(cell) != object) {
            // another object at this index is replaced, since the thread that has taken it may keep it for a long time
            cells.setRelease(cell, object);
        }
    }

    private static int cell() {
        return (int) Thread.currentThread().getId() & CELLS - 1;
    }
}
