package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Pool of a few scratch objects in an array. The id of a thread decides which index of the array it uses. The objects
 * are not held in a thread-local, because virtual threads come and go, and each would make an object of its own. An
 * object that has been taken belongs to its taker. If the object at an index is already taken, the next taker allocates
 * another one and never waits.
 *
 * <p>An object stays in the array while it is taken. Taking the reference out and putting it back would be two stores
 * that cost G1 extra work, into a cache line that threads share.
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
            // another object at this index is replaced, since its taker may keep it for long
            cells.setRelease(cell, object);
        }
    }

    private static int cell() {
        return (int) Thread.currentThread().getId() & CELLS - 1;
    }
}
