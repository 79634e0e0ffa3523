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
 * <p>An object stays in the array while a thread uses it. Otherwise each use would store a reference in the array
 * twice: to remove the object, and to put it back. Such stores are expensive with G1, and several threads share the
 * cache line.
 */
final class Pool<T extends Pool.Scratch> {
    private static final int CELLS = 64;

    /**
     * Changes the field {@code taken}. A thread takes an object by a compare-and-set from 0 to 1, so that no two
     * threads use the object at the same time. A thread gives the object back by an ordered store of 0, after all its
     * other stores to the object. In another order, those stores could overwrite what the next thread stores.
     */
    private static final AtomicIntegerFieldUpdater<Scratch> TAKEN =
            AtomicIntegerFieldUpdater.newUpdater(Scratch.class, "taken");

    /**
     * The objects of the pool. All threads whose ids lead to the same index read and replace the object at this index.
     * A thread stores its own object with release order, and other threads read it with acquire order. Otherwise they
     * could see the object without its fields.
     */
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
