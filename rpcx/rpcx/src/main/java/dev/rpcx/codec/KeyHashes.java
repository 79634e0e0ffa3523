package dev.rpcx.codec;

import dev.rpcx.schema.MessageType;
import dev.rpcx.schema.Shape;
import dev.rpcx.schema.WellKnown;
import java.util.Random;

/**
 * Counts how many keys of a set or map share a hash. The JDK's own tables find a key among others of its hash by their
 * order, which records do not have: they compare it with all. A sender that chooses 40,000 such keys would keep a
 * processor busy for ten seconds with one message.
 *
 * <p>Sets within the keys of sets multiply that: two sets of 20 elements of one hash take 400 comparisons of elements,
 * each of which is a set again. So what a key's own sets and maps have cost is a part of what comparing the key costs,
 * and sets within keys are counted from their first element on. So are keys that may be far larger than their bytes: a
 * message may repeat them as often as it likes, or have many small sets. The bound of one comparison is the key's bytes
 * and twice what its sets have cost: a set of k elements of one hash is built by k²/2 comparisons and equals another by
 * k² at most. Instead of its bytes in the message the memory of its messages counts where that is more, since a
 * component that is not sent is compared like any other.
 */
final class KeyHashes {
    /** Memory of an empty set or map with its first table and what makes it unmodifiable. */
    static final int COLLECTION_BYTES = 192;

    /** Memory of a key's entry in a linked set or map, with its places in the table. */
    private static final int ENTRY_BYTES = 64;

    /** Memory of the places that a key has here. */
    private static final int HASH_BYTES = 32;

    /**
     * Below this many keys nothing is counted, unless they contain sets or maps, are part of a key themselves, or may
     * be far larger than their bytes. Comparing any other with so few takes up to eight times as long as reading it,
     * while counting would make honest small sets slower by a sixth to a half.
     */
    private static final int MIN_KEYS = 32;

    /** A key with more components may be far larger than its bytes. */
    private static final int MAX_COMPONENTS = 8;

    /** Memory of the first table of one that counts from its first key on. */
    private static final int TABLE_BYTES = 128;

    private static final int MIN_BITS = 2;

    /** What one comparison costs beside the key's bytes; about the memory of a key of two numbers. */
    private static final int COMPARISON_BYTES = 16;

    /** Divides the square of a decimal's bytes: a decimal of 1,700 bytes costs as much as another key of 45,000. */
    private static final int SQUARE_BYTES = 64;

    /** Odd, and not known to senders: they shall not choose what meets in our own table. */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private int[] hashes = {};

    /** How many keys have the hash that stands in the same place; 0 where there is none. */
    private int[] counts = {};

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    /** Bytes of the longest decimal that has come so far. */
    private int mostBytes;

    /** Hash of the key that is about to be added, where keys are counted. */
    private int hash;

    /**
     * What is known of the keys of a set or map by their type.
     *
     * @param isDeep whether they contain sets or maps, whose hash is made of all that they hold
     * @param isWide whether they may be far larger than their bytes
     * @param isDecimal whether they are of {@link java.math.BigDecimal}
     */
    record Keys(boolean isDeep, boolean isWide, boolean isDecimal) {
        static Keys of(Shape key) {
            return new Keys(MessageType.holdsSetOrMap(key), KeyHashes.isWide(key), key == WellKnown.DECIMAL);
        }
    }

    KeyHashes(In in, Keys keys) {
        this.keys = keys;
        boolean isCostly = keys.isDeep || in.isWithinKey();
        this.minKeys = isCostly || keys.isWide ? 0 : MIN_KEYS;
        if (isCostly) {
            in.collection(TABLE_BYTES);
        } else if (keys.isWide) {
            // asked for, and not held against the message's size, which many small sets of such keys come near
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Whether a key may be far larger than its bytes: components that are not sent are compared like any other, and a
     * message within a key may be of two bytes.
     */
    private static boolean isWide(Shape key) {
        if (key == WellKnown.DECIMAL) {
            // one of many digits makes comparisons of small ones dear
            return true;
        }
        if (!(key instanceof MessageType message)) {
            return false;
        }
        if (message.kind() == MessageType.Kind.ONEOF) {
            return message.fields().stream().anyMatch(each -> isWide(each.shape()));
        }
        return message.fields().size() > MAX_COMPONENTS
                || message.fields().stream().anyMatch(field -> field.shape() instanceof MessageType);
    }

    /** Memory that such a key costs its set or map, beside its own. */
    static int placeBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /**
     * Before a key is added to so many others.
     *
     * @param before how many there are
     * @param bytes what it took in the message
     * @param made memory of the messages that it is made of
     * @param within what comparisons within the key have cost
     */
    void beforeAdding(In in, Object key, int before, int bytes, long made, long within) {
        if (before < minKeys) {
            return;
        }
        if (keys.isDeep) {
            in.hashed(Math.max(bytes, made));
        }
        hash = key.hashCode();
        int others = used == 0 ? 0 : counts[place(hash)];
        if (keys.isDecimal) {
            mostBytes = Math.max(mostBytes, bytes);
        }
        if (others > 0) {
            in.comparisons(
                    others, Math.max(keys.isDecimal ? ofDecimal() : COMPARISON_BYTES + bytes, made) + 2 * within);
        }
    }

    /**
     * The JDK's tables order decimals of one hash. For two that are about as large they bring the digits to one scale,
     * by a power of ten that is made anew and has as many digits as the longer one: that takes the square of its bytes.
     */
    private long ofDecimal() {
        return Math.max(COMPARISON_BYTES + mostBytes, (long) mostBytes * mostBytes / SQUARE_BYTES);
    }

    /** After the same key has been added, which was not there before. */
    void added(int count) {
        if (count <= minKeys) {
            return;
        }
        if (used >= hashes.length >> 1) {
            grow();
        }
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
        bits = Math.max(MIN_BITS, bits + 1);
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
