package dev.rpcx.codec;

import java.util.Random;

/**
 * Counts how many keys of a set or map share a hash. The JDK's own tables find a key among others of its hash by their
 * order, which records do not have: they compare it with all. A sender that chooses 40,000 such keys would keep a
 * processor busy for ten seconds with one message.
 */
final class KeyHashes {
    /** Memory of an empty set or map with its first table and what makes it unmodifiable. */
    static final int COLLECTION_BYTES = 192;

    /** Memory of a key's entry in a linked set or map, with its places in the table. */
    private static final int ENTRY_BYTES = 64;

    /** Memory of the places that a key has here. */
    private static final int HASH_BYTES = 32;

    /** Below this many keys nothing is counted. */
    private static final int MIN_KEYS = 32;

    /** Odd, and not known to senders: they shall not choose what meets in our own table. */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private int[] hashes = {};

    /** How many keys have the hash that stands in the same place; 0 where there is none. */
    private int[] counts = {};

    private int used;
    private int bits;

    /** Memory that such a key costs its set or map, beside its own. */
    static int placeBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /** Before a key is added to so many others. @param bytes what it took in the message */
    void beforeAdding(In in, Object key, int keys, int bytes) {
        if (keys < MIN_KEYS) {
            return;
        }
        int others = used == 0 ? 0 : counts[place(key.hashCode())];
        if (others > 0) {
            in.comparisons(others, bytes);
        }
    }

    /** After a key has been added that was not there before. */
    void added(Object key, int keys) {
        if (keys <= MIN_KEYS) {
            return;
        }
        if (used >= hashes.length >> 1) {
            grow();
        }
        int hash = key.hashCode();
        int at = place(hash);
        if (counts[at]++ == 0) {
            hashes[at] = hash;
            used++;
        }
    }

    private int place(int hash) {
        int mask = hashes.length - 1;
        int at = hash * MULTIPLIER >>> 32 - bits;
        while (counts[at] != 0 && hashes[at] != hash) {
            at = at + 1 & mask;
        }
        return at;
    }

    private void grow() {
        int[] oldHashes = hashes;
        int[] oldCounts = counts;
        bits = Math.max(6, bits + 1);
        hashes = new int[1 << bits];
        counts = new int[1 << bits];
        for (int i = 0; i < oldHashes.length; i++) {
            if (oldCounts[i] != 0) {
                int at = place(oldHashes[i]);
                hashes[at] = oldHashes[i];
                counts[at] = oldCounts[i];
            }
        }
    }
}
