package dev.rpcx.codec;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A few scratch objects, by thread number. No thread-local: virtual threads come and go, and each would make its own.
 * An object that is taken belongs to the taker; a slot found empty costs an allocation, never a wait.
 */
final class Pool<T> {
    private static final int SLOTS = 64;

    private final AtomicReferenceArray<@Nullable T> slots = new AtomicReferenceArray<>(SLOTS);
    private final Supplier<T> fresh;

    Pool(Supplier<T> fresh) {
        this.fresh = fresh;
    }

    T take() {
        T object = slots.getAndSet(slot(), null);
        return object != null ? object : fresh.get();
    }

    void give(T object) {
        slots.setRelease(slot(), object);
    }

    private static int slot() {
        return (int) Thread.currentThread().getId() & SLOTS - 1;
    }
}
