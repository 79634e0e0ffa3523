package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Pool of up to 64 scratch objects, each at an index that depends on the id of the thread. A thread-local variable
 * would create an object for each virtual thread. A taken object belongs to its thread until it is given back. A thread
 * never waits: if the object at its index is taken, it creates another one.
 *
 * <p>A taken object stays in the array. Removing it and putting it back would be two stores of a reference, which cost
 * more with G1, in a cache line that threads share.
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
            // replaces another object at this index, since its thread may keep it for a long time
            cells.setRelease(cell, object);
        }
    }

    private static int cell() {
        return (int) Thread.currentThread().getId() & CELLS - 1;
    }
}
