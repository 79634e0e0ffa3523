package dev.rpcx.internal.server;

import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A priority queue that returns the entry with the lowest {@link Entry#order} first. It is a binary heap in which each
 * entry knows its own index. So removing any entry takes only logarithmic time, as adding an entry does. This class is
 * not thread-safe.
 */
final class IndexedHeap<E extends IndexedHeap.Entry> {
    private static final int FIRST_LENGTH = 2;

    /** Entry of a queue. It can be in only one queue at a time. */
    abstract static class Entry {
        /**
         * Number by which a queue is ordered, lowest first. It must be unique within a queue, and must not change while
         * the entry is in a queue.
         */
        long order;

        private int at;
    }

    @Nullable
    private Entry[] entries = new Entry[FIRST_LENGTH];

    private int size;

    boolean isEmpty() {
        return size == 0;
    }

    /** Returns the entry with the lowest {@link Entry#order}; null if the queue is empty. */
    @Nullable
    E first() {
        return at(0);
    }

    /** Makes room for one more entry, so that the next {@code add} allocates no memory. */
    void makeRoom() {
        if (size == entries.length) {
            entries = Arrays.copyOf(entries, 2 * size);
        }
    }

    void add(E entry) {
        makeRoom();
        up(size++, entry);
    }

    /** Removes an entry. Does nothing if the entry is not in this queue. */
    void remove(E entry) {
        int at = ((Entry) entry).at;
        if (at >= size || entries[at] != entry) {
            return;
        }
        Entry last = entries[--size];
        entries[size] = null;
        if (last != null && last != entry) {
            up(at, last);
            down(last.at, last);
        }
    }

    /** Passes all entries to the consumer, in no particular order. */
    void forEach(Consumer<? super E> consumer) {
        for (int i = 0; i < size; i++) {
            E entry = at(i);
            if (entry != null) {
                consumer.accept(entry);
            }
        }
    }

    @SuppressWarnings("unchecked") // only entries of type E are added
    private @Nullable E at(int i) {
        return (E) entries[i];
    }

    /** Puts the entry at index {@code from}, then moves it up while its parent has a greater {@link Entry#order}. */
    private void up(int from, Entry entry) {
        int at = from;
        while (at > 0) {
            Entry above = entries[(at - 1) / 2];
            if (above == null || above.order < entry.order) {
                break;
            }
            put(at, above);
            at = (at - 1) / 2;
        }
        put(at, entry);
    }

    /** Puts the entry at index {@code from}, then moves it down while a child has a smaller {@link Entry#order}. */
    private void down(int from, Entry entry) {
        int at = from;
        while (2 * at + 1 < size) {
            int child = 2 * at + 1;
            Entry below = entries[child];
            Entry right = child + 1 < size ? entries[child + 1] : null;
            if (right != null && below != null && right.order < below.order) {
                child++;
                below = right;
            }
            if (below == null || entry.order < below.order) {
                break;
            }
            put(at, below);
            at = child;
        }
        put(at, entry);
    }

    private void put(int at, Entry entry) {
        entries[at] = entry;
        entry.at = at;
    }
}
