package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Random;

/**
 * Counts the work of comparing keys of a set or map that have the same hash, so that {@link In} can limit this work.
 * The JDK's hash tables compare a new key with all keys that have the same hash, unless the keys' class is
 * {@code Comparable}; most records are not. With 40,000 keys that have the same hash in one message, a sender could
 * keep a processor busy for ten seconds.
 *
 * <p>The cost of comparing a key is counted in bytes. It is the larger of two numbers: the number of bytes of the key
 * in the message plus {@link #COMPARISON_BYTES}, and the memory of the messages in the key. The memory matters because
 * components that are not sent are compared too. The comparisons of the first {@link #MIN_KEYS} keys of a set or map
 * are not counted, unless a single comparison may be costly or the keys are part of other keys.
 *
 * <p>Keys may hold sets or maps. To compare two such keys, the JDK looks up the values of one key in the other key.
 * Either of the two keys can be the one that is searched. A lookup computes the hash of the value again, and compares
 * the value with all values that have this hash. So this class keeps two numbers for a key that holds sets or maps:
 *
 * <ul>
 *   <li>{@code compared}: how many times, at most, one value of another key is compared with values in this key. For a
 *       set of 100 records that are not {@code Comparable}, 40 of which have the same hash, the number is 40. For sets
 *       within sets, the numbers of all levels are multiplied: for a set of such sets, 3 of which have the same hash,
 *       the number is 3 × 40 = 120.
 *   <li>{@code lookedUp}: how many times, at most, one value of another key is looked up in this key. For the set of
 *       records, the number is 1. For the set of sets, it is 3, since a record may be looked up in each of 3 inner
 *       sets. So the innermost level is left out of the product.
 * </ul>
 *
 * <p>A comparison of keys A and B costs at most the sum of:
 *
 * <ul>
 *   <li>the cost of comparing each value of A once, multiplied by {@code compared} of B;
 *   <li>the cost of looking up each value of A once, multiplied by {@code lookedUp} of B;
 *   <li>the cost of looking up each value of B once, multiplied by {@code lookedUp} of A.
 * </ul>
 *
 * <p>If keys that have the same hash are {@code Comparable}, the JDK may call {@code compareTo} of the decimals in
 * them, wherever in a key a decimal is. For two decimals of about the same size, {@code compareTo} may multiply one of
 * them by a power of ten that has as many digits as the longer one. The time for this grows with the square of the
 * number of digits.
 */
final class KeyHashes {
    /**
     * Memory in bytes of a set or map without elements. The first table, and the wrapper that makes the set or map
     * unmodifiable, are included.
     */
    static final int COLLECTION_BYTES = 192;

    /**
     * Memory in bytes that one key adds to a linked set or map: the entry of the key, and its share of the table. The
     * key object itself is counted elsewhere.
     */
    private static final int ENTRY_BYTES = 64;

    /** Memory in bytes that one key adds to the arrays of this class. */
    private static final int HASH_BYTES = 32;

    /**
     * The comparisons of the first {@code MIN_KEYS} keys of a set or map are not counted. Comparing 32 keys takes at
     * most eight times as long as reading them, and counting would make small sets slower by a sixth to a half. All
     * keys are counted if they hold sets or maps, are part of other keys, or may cost far more to compare than their
     * bytes in the message suggest.
     */
    private static final int MIN_KEYS = 32;

    /**
     * Maximum number of components of a key that {@link #mayBeLarge} regards as small. Comparing a key with more
     * components may cost far more than the key's bytes in the message suggest, since components that are not sent are
     * compared too.
     */
    private static final int MAX_COMPONENTS = 8;

    /**
     * Memory in bytes of the first arrays of this class. If {@code minKeys} is 0, the arrays are needed as soon as the
     * set or map has a key. In this case, the constructor counts their memory.
     */
    private static final int TABLE_BYTES = 128;

    private static final int MIN_BITS = 2;

    /**
     * Cost of each comparison of a key, in bytes, in addition to the key's own bytes in the message. This is roughly
     * the memory of a key that consists of two numbers.
     */
    private static final int COMPARISON_BYTES = 16;

    /**
     * Random odd number by which a hash is multiplied to find its index in {@link #hashes}. Senders do not know this
     * number, so they cannot choose hashes that have the same index.
     */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private static final int[] NO_HASHES = {};
    private static final float[] NO_COSTS = {};

    private int[] hashes = NO_HASHES;

    /**
     * For each hash, the sum of the numbers {@code compared} of all counted keys that have this hash. The number
     * {@code compared} of a key is the maximum number of comparisons of one value of another key with values in that
     * key (see the comment of this class). It is 1 for a key without sets and maps. The sum for a hash is at the index
     * of the hash in {@link #hashes}. The sum is 0 at an index without a hash, and infinite if it is too large for a
     * float.
     */
    private float[] compared = NO_COSTS;

    /**
     * For each hash, the sum of the numbers {@code lookedUp} of all counted keys that have this hash. The comment of
     * this class explains {@code lookedUp}. The sum for a hash is at the index of the hash in {@link #hashes}. If
     * {@code keys.costsBoth} is false, the keys hold no sets or maps, nothing is looked up, and the array is empty.
     */
    private float[] lookedUp = NO_COSTS;

    /**
     * For each hash, the sum of {@code compareCost() + lookupCost} of all counted keys that have this hash. For one
     * key, this is the cost, in bytes, of looking up each value of the key once in another key, with one comparison for
     * each value. The sum for a hash is at the index of the hash in {@link #hashes}. If {@code keys.costsBoth} is
     * false, the keys hold no sets or maps, nothing is looked up, and the array is empty.
     */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    /**
     * Size in the message, in bytes, of the key that was read last. While a key is being read, this field holds the
     * position at which the key begins.
     */
    private int bytes;
    /**
     * Memory, in bytes, of the messages in the key that was read last, plus eight bytes for each element of the key's
     * collections. While a key is being read, this field holds the value that {@code In.madeBytes} had when the key
     * began.
     */
    private long made;
    /**
     * For the key that was read last: the cost, in bytes, of looking up each of its values once in another key, without
     * comparing the values, plus the cost of comparing its long decimals. Always 0 if {@code keys.costsBoth} is false;
     * otherwise, while a key is being read, this field holds the result of {@link In#beginKey}: the sum of these costs
     * for the part of the message before the key.
     */
    private long lookupCost;
    /**
     * The number {@code compared} of the key that was read last: the maximum number of comparisons of one value of
     * another key with values in this key. It is 1 for a key without sets and maps. The comment of this class has
     * examples. While a key is being read, this field has the number of the enclosing key, and {@link #endKey} gives
     * that number back to {@link In}.
     */
    private float keyCompared = 1;
    /**
     * For the key that was read last: how many times, at most, one value of another key is looked up in this key. The
     * comment of this class explains this number, {@code lookedUp}. While a key is being read, this field has the
     * number of the enclosing key, and {@link #endKey} gives that number back to {@link In}.
     */
    private float keyLookedUp = 1;

    /**
     * Hash of the key that is about to be added to the set or map. Not set for a key whose comparisons are not counted.
     */
    private int hash;

    /**
     * Properties of a type of keys on which the counting of comparisons depends.
     *
     * @param isDeep whether the keys hold sets or maps, so that the hash of a key is computed from everything in the
     *     key
     * @param mayBeLarge whether comparing a key may cost far more than the key's bytes in the message suggest
     * @param costsBoth whether the cost of comparing two keys depends on both keys. If false, the cost is at most that
     *     of comparing the smaller key.
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
            // Unlike in.collection, in.take does not count these bytes towards Limits.memoryPerByte. Messages with many
            // small sets of keys that may be large come near that limit already.
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Returns whether comparing a key may cost far more than the key's bytes in the message suggest. The result is true
     * in two cases:
     *
     * <ul>
     *   <li>The key, or a case of its sealed type, is a message with more than {@link #MAX_COMPONENTS} components or
     *       with another message in it. Components that are not sent are compared too.
     *   <li>A comparison of keys may call {@code compareTo} of decimals. That method may multiply one decimal by a
     *       large power of ten.
     * </ul>
     */
    private static boolean mayBeLarge(Shape key) {
        if (isOrderedByDecimals(key)) {
            // comparing a decimal of many digits with a small decimal is expensive too
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

    /**
     * Returns whether the JDK's hash tables may call {@code compareTo} of decimals when they compare two keys that have
     * the same hash. This is so if the keys are decimals, or if they hold decimals and are {@code Comparable}. For the
     * keys of a sealed type, one such case is enough.
     */
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
     * Forgets the size and the costs of the key that was read last. Called before each entry of a map is read: the
     * entry may have been sent without a key, and would otherwise count with the size and the costs of the previous
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
     * Begins to measure a key that is about to be read. Stores the present values of the counters of {@link In}, so
     * that {@link #endKey} can subtract or restore them.
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

    /**
     * Computes the size and the memory of the key that has just been read, and its {@link #lookupCost} if
     * {@code keys.costsBoth} is true. Each of them is the present value of a counter of {@link In}, minus the value
     * that {@link #beginKey} has stored. For example, the size is the present position in the message, minus the
     * position at which the key begins. If {@code keys.costsBoth} is true, this method also takes the numbers
     * {@code compared} and {@code lookedUp} of the key from {@code In}, and sets those of the enclosing key there
     * again.
     */
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
     * Counts the cost of comparing a key with those keys of a set or map that have the same hash. Called just before
     * the key is added to the set or map.
     *
     * @param key key that is about to be added; {@link #endKey} or {@link #noKey} has already stored the size of this
     *     key and the costs of comparing it
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

    /** Returns the cost, in bytes, of comparing once each value of the key that was read last. */
    private long compareCost() {
        return Math.max(COMPARISON_BYTES + bytes, made);
    }

    /**
     * Records the hash of a key that has just been added to a set or map. Called only for a key that the set or map did
     * not have before.
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
