package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Keeps up to 64 objects, such as an {@link Out}, so that threads can use them again for the next message. A thread
 * uses the object at an index that depends on the thread's id. If that object is in use, the thread does not wait, but
 * gets a new object. A thread-local variable would create an object for each virtual thread.
 *
 * <p>An object stays in the array while a thread uses it. Removing the object and putting it back would be two stores
 * of a reference, which are expensive with G1, in a cache line that threads share.
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

    /** An object that a pool can hold. The field {@code taken} is 1 while a thread uses the object, and 0 otherwise. */
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
            // The array has another object at this index, or none yet. A thread may be using the other object for a
            // long time, and every take at this index would create a new object meanwhile. Therefore the free object
            // replaces it.
            cells.setRelease(cell, object);
        }
    }

    private static int cell() {
        return (int) Thread.currentThread().getId() & CELLS - 1;
    }
}
