package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A few scratch objects, by thread number. No thread-local: virtual threads come and go, and each would make its own.
 * An object that is taken belongs to the taker; where it is taken already, another one costs an allocation, never a
 * wait.
 *
 * <p>An object stays in its place while it is taken. To take the reference out and to put it back would be two stores
 * that G1 has work with, into a line of the cache that threads share.
 */
final class Pool<T extends Pool.Scratch> {
    private static final int SLOTS = 64;

    private static final AtomicIntegerFieldUpdater<Scratch> TAKEN =
            AtomicIntegerFieldUpdater.newUpdater(Scratch.class, "taken");

    private final AtomicReferenceArray<@Nullable T> slots = new AtomicReferenceArray<>(SLOTS);
    private final Supplier<T> fresh;

    Pool(Supplier<T> fresh) {
        this.fresh = fresh;
    }

    /** What a pool has: new ones are taken. */
    abstract static class Scratch {
        volatile int taken = 1;
    }

    T take() {
        T object = slots.getAcquire(slot());
        return object != null && TAKEN.compareAndSet(object, 0, 1) ? object : fresh.get();
    }

    void give(T object) {
        TAKEN.lazySet(object, 0);
        int slot = slot();
        if (slots.getPlain(slot) != object) {
            // whoever has the one that is there may keep it for long
            slots.setRelease(slot, object);
        }
    }

    private static int slot() {
        return (int) Thread.currentThread().getId() & SLOTS - 1;
    }
}
