package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Random;

/**
 * Counts how many keys of a set or map have the same hash. The JDK's hash tables find a key among others of its hash by
 * their order. Most records have no order, and the tables compare such a key with all others of its hash. A sender that
 * chooses 40,000 such keys of one hash would keep a processor busy for ten seconds with one message.
 *
 * <p>A key costs its bytes in the message, or the memory of its messages if that is more, since a component that is not
 * sent is compared like any other. Keys that may be far larger than their bytes are counted from the first key on,
 * because a message may repeat such keys as often as it likes, or have many small sets of them.
 *
 * <p>Two keys that hold sets or maps are compared by looking up what one key holds in the other; which of the two is
 * looked up changes from level to level. Each lookup computes the hash of a value anew, however large the value is, and
 * compares the value with all values of that hash. So a value within one key is compared with at most as many values of
 * the other key as have one hash in the corresponding set or map; for sets within sets these numbers are multiplied
 * over the levels. The value is looked up as often, but the last level is left out of the product. The upper bound of
 * what comparing two keys costs is therefore a sum: the cost of comparing one key, multiplied by the number of
 * comparisons that the other key allows, and for each key the cost of looking up what it holds, multiplied by the
 * number of lookups that the other key allows. Elements of sets within keys are counted from the first element on.
 *
 * <p>The JDK's tables order decimals of one hash. To order two decimals that are about as large, they bring the digits
 * to one scale by a power of ten, which is computed anew each time and has as many digits as the longer decimal. That
 * costs time in proportion to the square of the bytes of the longer decimal. Looking up a decimal costs as much,
 * wherever the decimal is in a key.
 */
final class KeyHashes {
    /** Memory in bytes of an empty set or map, including its first table and the object that makes it unmodifiable. */
    static final int COLLECTION_BYTES = 192;

    /** Memory in bytes of a key's entry in a linked set or map, including what the entry takes in the table. */
    private static final int ENTRY_BYTES = 64;

    /** Memory in bytes that a key takes in the tables of this class. */
    private static final int HASH_BYTES = 32;

    /**
     * Number of keys up to which nothing is counted, unless the keys contain sets or maps, are part of a key
     * themselves, or may be far larger than their bytes. Comparing so few keys of any other kind takes up to eight
     * times as long as reading them, while counting would make honest small sets slower by a sixth to a half.
     */
    private static final int MIN_KEYS = 32;

    /** A key with more components than this may be far larger than its bytes. */
    private static final int MAX_COMPONENTS = 8;

    /** Memory in bytes of the first tables of a {@code KeyHashes} that counts from its first key on. */
    private static final int TABLE_BYTES = 128;

    private static final int MIN_BITS = 2;

    /** Cost in bytes of one comparison in addition to the key's bytes; about the memory of a key of two numbers. */
    private static final int COMPARISON_BYTES = 16;

    /**
     * Random multiplier of hashes, which is odd. Senders do not know it, so that they cannot choose which hashes meet
     * in the tables of this class.
     */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private static final int[] NO_HASHES = {};
    private static final float[] NO_COSTS = {};

    private int[] hashes = NO_HASHES;

    /**
     * Number of values, in all keys of the hash at the same index, that one value may be compared with: the number of
     * these keys if they hold no sets; 0 if there is no such key; infinite if the number is too large for a float.
     */
    private float[] compared = NO_COSTS;

    /**
     * How often a value may be looked up in all keys of the hash at the same index. The array is empty if only the
     * comparing of keys costs anything.
     */
    private float[] lookedUp = NO_COSTS;

    /**
     * Cost of looking up all keys of the hash at the same index, and what they hold, once. The array is empty in the
     * same case as {@code lookedUp}.
     */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    // these fields describe the key that was read last; while a key is being read, they hold what the methods of In
    // returned when the key began

    private int bytes;
    private long made;
    private long lookupCost;
    private float keyCompared = 1;
    private float keyLookedUp = 1;

    /** Hash of the key that is about to be added, if keys are counted. */
    private int hash;

    /**
     * What the type of the keys of a set or map says of the keys.
     *
     * @param isDeep whether the keys contain sets or maps, whose hash is computed from all that they hold
     * @param isWide whether the keys may be far larger than their bytes
     * @param costsBoth whether comparing two keys costs what each of them costs, and not only what the smaller one does
     */
    record Keys(boolean isDeep, boolean isWide, boolean costsBoth) {
        static Keys of(Shape key) {
            boolean isDeep = MessageType.holdsSetOrMap(key);
            return new Keys(isDeep, KeyHashes.isWide(key), isDeep || isOrderedByDecimals(key));
        }
    }

    KeyHashes(In in, Keys keys) {
        this.keys = keys;
        boolean isCostly = keys.isDeep || in.isWithinKey();
        this.minKeys = isCostly || keys.isWide ? 0 : MIN_KEYS;
        if (isCostly) {
            in.collection(TABLE_BYTES);
        } else if (keys.isWide) {
            // the memory is asked for, but not counted against the limit that grows with the message's size, as
            // messages with many small sets of such keys come near that limit
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Says whether a key may be far larger than its bytes: components that are not sent are compared like any other,
     * and a message within a key may have no more than two bytes.
     */
    private static boolean isWide(Shape key) {
        if (isOrderedByDecimals(key)) {
            // a decimal of many digits makes comparisons of small ones expensive
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

    /** Says whether the JDK's tables may compare the decimals of two keys of one hash by their order. */
    private static boolean isOrderedByDecimals(Shape key) {
        if (!(key instanceof MessageType message)) {
            return key == WellKnown.DECIMAL;
        }
        return message.kind() == MessageType.Kind.ONEOF
                ? message.fields().stream().anyMatch(each -> isOrderedByDecimals(each.shape()))
                : Comparable.class.isAssignableFrom(message.javaClass()) && MessageType.holdsDecimal(message);
    }

    /**
     * Returns the memory in bytes that a key of this codec costs its set or map, in addition to the memory of the key
     * itself.
     */
    static int overheadBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /**
     * Resets the numbers of the key before an entry of a map is read, since the entry may have no key in the message.
     * Such a key costs nothing but {@code COMPARISON_BYTES}.
     */
    void noKey() {
        bytes = 0;
        made = 0;
        lookupCost = 0;
        keyCompared = 1;
        keyLookedUp = 1;
    }

    /** Begins a key, which is read next. */
    void beginKey(In in) {
        bytes = in.position();
        made = in.madeBytes();
        if (keys.costsBoth) {
            lookupCost = in.beginKey();
            keyCompared = in.compared();
            keyLookedUp = in.lookedUp();
            in.setComparisons(1, 1);
        }
    }

    /** Ends the key, which has been read, and computes its numbers. */
    void endKey(In in) {
        bytes = in.position() - bytes;
        made = in.madeBytes() - made;
        if (keys.costsBoth) {
            lookupCost = in.endKey(lookupCost);
            float outerCompared = keyCompared;
            float outerLookedUp = keyLookedUp;
            keyCompared = in.compared();
            keyLookedUp = in.lookedUp();
            in.setComparisons(outerCompared, outerLookedUp);
        }
    }

    /**
     * Counts what it costs to add the key that was read last to {@code before} other keys. It is called before the key
     * is added.
     */
    void beforeAdding(In in, Object key, int before) {
        if (before < minKeys) {
            return;
        }
        if (keys.isDeep) {
            in.hashed(Math.max(bytes, made));
        }
        hash = key.hashCode();
        if (used == 0) {
            return;
        }
        int at = place(hash);
        if (compared[at] != 0) {
            double cost = (double) compared[at] * compareCost();
            if (keys.costsBoth) {
                cost += (double) lookedUp[at] * (compareCost() + lookupCost) + (double) keyLookedUp * costs[at];
            }
            in.comparisons(cost);
        }
    }

    /** Returns what it costs to compare each of the key's values once. */
    private long compareCost() {
        return Math.max(COMPARISON_BYTES + bytes, made);
    }

    /**
     * Enters the key in the tables, after it has been added to its set or map as a new key.
     *
     * @param count number of keys in the set or map, including this one
     */
    void added(In in, int count) {
        if (count <= minKeys) {
            return;
        }
        if (used >= hashes.length >> 1) {
            grow();
        }
        int at = place(hash);
        if (compared[at] == 0) {
            hashes[at] = hash;
            used++;
        }
        compared[at] += keyCompared;
        float outerLookedUp = in.lookedUp();
        if (keys.costsBoth) {
            lookedUp[at] += keyLookedUp;
            costs[at] += compareCost() + lookupCost;
            outerLookedUp = Math.max(outerLookedUp, lookedUp[at]);
        }
        in.setComparisons(Math.max(in.compared(), compared[at]), outerLookedUp);
    }

    private int place(int hash) {
        int mask = hashes.length - 1;
        int at = hash * MULTIPLIER >>> 32 - bits;
        while (compared[at] != 0 && hashes[at] != hash) {
            at = at + 1 & mask;
        }
        return at;
    }

    private void grow() {
        int[] oldHashes = hashes;
        float[] oldCompared = compared;
        float[] oldLookedUp = lookedUp;
        float[] oldCosts = costs;
        bits = Math.max(MIN_BITS, bits + 1);
        int length = 1 << bits;
        hashes = new int[length];
        compared = new float[length];
        if (keys.costsBoth) {
            lookedUp = new float[length];
            costs = new float[length];
        }
        for (int i = 0; i < oldHashes.length; i++) {
            if (oldCompared[i] != 0) {
                int at = place(oldHashes[i]);
                hashes[at] = oldHashes[i];
                compared[at] = oldCompared[i];
                if (keys.costsBoth) {
                    lookedUp[at] = oldLookedUp[i];
                    costs[at] = oldCosts[i];
                }
            }
        }
    }
}
