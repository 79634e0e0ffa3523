package dev.rpcx;

import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A queue of those that have turns, the earliest turn first. It takes, gives up and moves any of them in logarithmic
 * time, since each knows where it stands; and it holds no object beside an array. Not thread-safe.
 */
final class TurnHeap<E extends TurnHeap.Entry> {
    private static final int FIRST_LENGTH = 2;

    /** Stands in one queue at most. */
    abstract static class Entry {
        /**
         * What comes earlier has a smaller one; no two in a queue have the same. Not changed while it stands in one.
         */
        long turn;

        private int at;
    }

    @Nullable
    private Entry[] entries = new Entry[FIRST_LENGTH];

    private int size;

    boolean isEmpty() {
        return size == 0;
    }

    /** @return null if there is none */
    @Nullable
    E first() {
        return at(0);
    }

    /** The next to be added takes no memory. */
    void makeRoom() {
        if (size == entries.length) {
            entries = Arrays.copyOf(entries, 2 * size);
        }
    }

    void add(E entry) {
        makeRoom();
        up(size++, entry);
    }

    /** Does nothing if it does not stand in this queue: nobody else leaves in its place. */
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

    /** In no certain order. */
    void forEach(Consumer<? super E> consumer) {
        for (int i = 0; i < size; i++) {
            E entry = at(i);
            if (entry != null) {
                consumer.accept(entry);
            }
        }
    }

    @SuppressWarnings("unchecked") // nothing else is added
    private @Nullable E at(int i) {
        return (E) entries[i];
    }

    /** Puts it here, or above where those have later turns. */
    private void up(int from, Entry entry) {
        int at = from;
        while (at > 0) {
            Entry above = entries[(at - 1) / 2];
            if (above == null || above.turn < entry.turn) {
                break;
            }
            put(at, above);
            at = (at - 1) / 2;
        }
        put(at, entry);
    }

    /** Puts it here, or below where one has an earlier turn. */
    private void down(int from, Entry entry) {
        int at = from;
        while (2 * at + 1 < size) {
            int child = 2 * at + 1;
            Entry below = entries[child];
            Entry right = child + 1 < size ? entries[child + 1] : null;
            if (right != null && below != null && right.turn < below.turn) {
                child++;
                below = right;
            }
            if (below == null || entry.turn < below.turn) {
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
