package dev.rpcx.internal.call;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Takes the items of a queue, and waits where the queue is empty. The items end at the first object that
 * {@code isEnd} accepts. One thread at a time uses an object of this class.
 */
public final class QueueIterator<T> implements Iterator<T> {
    private final BlockingQueue<? extends T> queue;
    private final Predicate<? super T> isEnd;

    /** The item that has been taken from the queue and not been returned yet; null if there is none. */
    private @Nullable T next;

    private boolean isOver;

    public QueueIterator(BlockingQueue<? extends T> queue, Predicate<? super T> isEnd) {
        this.queue = queue;
        this.isEnd = isEnd;
    }

    /**
     * Waits until the queue has an object. If the calling thread is interrupted, throws an exception, so that the
     * interrupt does not look like the end.
     */
    @Override
    public boolean hasNext() {
        if (next == null && !isOver) {
            T taken;
            try {
                taken = queue.take();
            } catch (InterruptedException e) {
                throw StreamErrors.interruptedReader();
            }
            isOver = isEnd.test(taken);
            next = isOver ? null : taken;
        }
        return next != null;
    }

    @Override
    public T next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the queue has ended");
        }
        T item = Objects.requireNonNull(next);
        next = null;
        return item;
    }
}
