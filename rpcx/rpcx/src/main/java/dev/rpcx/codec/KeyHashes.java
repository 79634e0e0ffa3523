package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Random;

/**
 * Counts the work of comparing keys of a set or map that have the same hash, so that {@link In} can limit it. The JDK's
 * hash tables compare such a key with all others of its hash, unless the keys' class is {@code Comparable}; most
 * records are not. A sender that chooses 40,000 keys of one hash could keep a processor busy for ten seconds with one
 * message.
 *
 * <p>The cost of comparing a key is counted in bytes. It is the number of bytes that the key has in the message, or the
 * memory of the messages in the key if that is more: components that are not sent are compared too. The first
 * {@link #MIN_KEYS} keys of a set or map are not counted, unless a single comparison may be costly.
 *
 * <p>Keys may hold sets or maps. To compare two such keys, the JDK looks up the values of one key in the other, in
 * either direction. A lookup computes the hash of the value again, and compares the value with all values that have
 * this hash. So this class keeps two numbers for a key that holds sets or maps:
 *
 * <ul>
 *   <li>{@code compared}: the largest number of values in the key with which one value of another key may be compared,
 *       that is, the largest number of values with one hash. If the key holds sets within sets, it is the product of
 *       these numbers at all levels.
 *   <li>{@code lookedUp}: the number of times that one value of another key may be looked up in the key. It is the same
 *       product without the innermost level.
 * </ul>
 *
 * <p>To compare keys A and B then costs at most the sum of:
 *
 * <ul>
 *   <li>the cost of comparing each value of A once, multiplied by {@code compared} of B;
 *   <li>the cost of looking up each value of A once, multiplied by {@code lookedUp} of B;
 *   <li>the cost of looking up each value of B once, multiplied by {@code lookedUp} of A.
 * </ul>
 *
 * <p>Decimals that have the same hash are compared by their order. For two decimals of about the same size, the JDK may
 * multiply one of them by a power of ten that has as many digits as the longer one. The time for this grows with the
 * square of the decimal's length, wherever in a key the decimal is.
 */
final class KeyHashes {
    /**
     * Memory in bytes of a set or map without elements, with its first table and the wrapper that makes it
     * unmodifiable.
     */
    static final int COLLECTION_BYTES = 192;

    /**
     * Memory in bytes that one key adds to a linked set or map: its entry, and its share of the table. The key object
     * itself is counted elsewhere.
     */
    private static final int ENTRY_BYTES = 64;

    /** Memory in bytes that one key adds to the arrays of this class. */
    private static final int HASH_BYTES = 32;

    /**
     * Number of keys that a set or map may have before the cost of comparing them is counted. To compare 32 keys takes
     * at most eight times as long as to read them, and counting them would make small sets slower by a sixth to a half.
     * All keys are counted if they hold sets or maps, are part of other keys, or may be far larger than their bytes in
     * the message.
     */
    private static final int MIN_KEYS = 32;

    /**
     * Max number of components of a small key. A key with more components may be far larger than its bytes in the
     * message, since components that are not sent take memory too.
     */
    private static final int MAX_COMPONENTS = 8;

    /**
     * Memory in bytes of the first arrays of this class. It is taken in advance if the first {@link #MIN_KEYS} keys are
     * counted too.
     */
    private static final int TABLE_BYTES = 128;

    private static final int MIN_BITS = 2;

    /**
     * Cost of each comparison in bytes, in addition to the key's own bytes in the message. It is about the memory of a
     * key that consists of two numbers.
     */
    private static final int COMPARISON_BYTES = 16;

    /**
     * Random odd number by which hashes are multiplied to find their index in {@link #hashes}. Senders do not know it,
     * so they cannot choose hashes that have the same index.
     */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private static final int[] NO_HASHES = {};
    private static final float[] NO_COSTS = {};

    private int[] hashes = NO_HASHES;

    /**
     * For the hash at the same index of {@link #hashes}: number of values, in all keys of this hash, with which one
     * value of another key may be compared. If the keys hold no sets or maps, it is the number of keys. It is 0 where
     * there is no key, and infinite if it is too large for a float.
     */
    private float[] compared = NO_COSTS;

    /**
     * For the hash at the same index of {@link #hashes}: how many times one value of another key may be looked up in
     * all keys of this hash. Empty if {@code keys.costsBoth} is false.
     */
    private float[] lookedUp = NO_COSTS;

    /**
     * For the hash at the same index of {@link #hashes}: cost, in bytes, of looking up once all keys of this hash and
     * all values in them. Empty if {@code keys.costsBoth} is false.
     */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    /**
     * Number of bytes that the latest key has in the message. While a key is being read, this is the position in the
     * message at which it begins.
     */
    private int bytes;
    /**
     * Memory in bytes of the messages in the latest key. While a key is being read, this is what {@code In.madeBytes}
     * returned before it.
     */
    private long made;
    /**
     * Cost, in bytes, of looking up once each value that the latest key holds. While a key is being read, this is what
     * {@code In.beginKey} returned.
     */
    private long lookupCost;
    /**
     * Number of values in the latest key with which one value of another key may be compared. While a key is being
     * read, this is the number of the enclosing key, to be restored afterwards.
     */
    private float keyCompared = 1;
    /**
     * How many times one value of another key may be looked up in the latest key. While a key is being read, this is
     * the number of the enclosing key, to be restored afterwards.
     */
    private float keyLookedUp = 1;

    /** Hash of the key that is about to be added to the set or map. It is not set for a key that is not counted. */
    private int hash;

    /**
     * What this class has to know of a type of keys.
     *
     * @param isDeep whether the keys hold sets or maps, so that the hash of a key is computed from everything in them
     * @param mayBeLarge whether a key may be far larger than its bytes in the message
     * @param costsBoth whether the cost of comparing two keys depends on both of them; if not, it is at most the cost
     *     of the smaller one
     */
    record Keys(boolean isDeep, boolean mayBeLarge, boolean costsBoth) {
        static Keys of(Shape key) {
            boolean isDeep = MessageType.holdsSetOrMap(key);
            return new Keys(isDeep, KeyHashes.mayBeLarge(key), isDeep || isOrderedByDecimals(key));
        }
    }

    KeyHashes(In in, Keys keys) {
        this.keys = keys;
        boolean isCostly = keys.isDeep || in.isWithinKey();
        this.minKeys = isCostly || keys.mayBeLarge ? 0 : MIN_KEYS;
        if (isCostly) {
            in.collection(TABLE_BYTES);
        } else if (keys.mayBeLarge) {
            // These bytes do not count towards Limits.memoryPerByte: messages with many small sets of such keys already
            // come near that limit.
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Says whether it may cost far more to compare a key than its bytes in the message suggest. This is so for a key
     * with many components or with a message in it, because components that are not sent are compared too. It is also
     * so for a key whose decimals are compared by their order.
     */
    private static boolean mayBeLarge(Shape key) {
        if (isOrderedByDecimals(key)) {
            // a decimal with many digits makes comparisons expensive for small decimals too
            return true;
        }
        if (!(key instanceof MessageType message)) {
            return false;
        }
        if (message.kind() == MessageType.Kind.ONEOF) {
            return message.fields().stream().anyMatch(each -> mayBeLarge(each.shape()));
        }
        return message.fields().size() > MAX_COMPONENTS
                || message.fields().stream().anyMatch(field -> field.shape() instanceof MessageType);
    }

    /** Says whether the JDK's hash tables may compare two keys of the same hash by the order of decimals in them. */
    private static boolean isOrderedByDecimals(Shape key) {
        if (!(key instanceof MessageType message)) {
            return key == WellKnown.DECIMAL;
        }
        return message.kind() == MessageType.Kind.ONEOF
                ? message.fields().stream().anyMatch(each -> isOrderedByDecimals(each.shape()))
                : Comparable.class.isAssignableFrom(message.javaClass()) && MessageType.holdsDecimal(message);
    }

    /** Returns the memory in bytes that a key takes in a set or map, without the key object itself. */
    static int overheadBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /**
     * Forgets the latest key. It is called before each entry of a map is read, since an entry may be sent without a
     * key.
     */
    void noKey() {
        bytes = 0;
        made = 0;
        lookupCost = 0;
        keyCompared = 1;
        keyLookedUp = 1;
    }

    /**
     * Begins to measure a key that is about to be read. Stores what {@link In} has counted so far, for {@link #endKey}.
     */
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

    /** Ends measuring the key that has just been read. Computes its size and cost from what {@link In} has counted. */
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
     * Counts the cost of adding the latest key to its set or map, where it is compared with the keys of the same hash.
     * It is called just before the key is added.
     *
     * @param before number of keys that the set or map has already
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
            in.countComparisons(cost);
        }
    }

    /** Returns the cost, in bytes, of comparing each value of the latest key once. */
    private long compareCost() {
        return Math.max(COMPARISON_BYTES + bytes, made);
    }

    /**
     * Records the hash of a key that has just been added to its set or map. It is called only for a key that was not
     * there before.
     *
     * @param count number of keys that the set or map has now
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
