package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Random;

/**
 * Counts the keys of a set or map that have the same hash, and what it costs to compare them. The JDK's hash tables
 * find a key among others with the same hash by the order of the keys. Most records have no order, so the tables
 * compare such a key with all others that have the same hash. A sender that chooses 40,000 such keys with one hash
 * would keep a processor busy for ten seconds with one message.
 *
 * <p>The cost of comparing a key is its number of bytes in the message, or the memory in bytes of the messages in the
 * key if that is more. The memory counts because a component that is not sent is compared like any other. Keys that may
 * be far larger than their bytes in the message are counted from the first key on, because a message may repeat such
 * keys any number of times, or have many small sets of them.
 *
 * <p>Two keys that hold sets or maps are compared by looking up the values of one key in the other. Which of the two
 * keys is searched changes from level to level. Each lookup computes the hash of the value again, however large the
 * value is, and compares the value with all values that have this hash. This gives two upper bounds for each value
 * within one key:
 *
 * <ul>
 *   <li>With how many values of the other key the value is compared. This is the number of values with one hash in the
 *       corresponding set or map; for sets within sets, the numbers of all levels are multiplied.
 *   <li>How many times the value is looked up in the other key. This is the same product, but without the number of the
 *       last level.
 * </ul>
 *
 * <p>The cost of comparing two keys, A and B, is therefore at most the sum of three products:
 *
 * <ul>
 *   <li>The cost of comparing each value of A once, multiplied by the number of values of B with which one value may be
 *       compared.
 *   <li>The cost of looking up once what A holds, multiplied by the number of times that a value may be looked up in B.
 *   <li>The cost of looking up once what B holds, multiplied by the number of times that a value may be looked up in A.
 * </ul>
 *
 * <p>The elements of a set that is part of a key are counted from the first element on.
 *
 * <p>The JDK's tables order decimals that have the same hash. To order two decimals of about the same size, the JDK
 * brings their digits to one scale by a power of ten. This power has as many digits as the longer decimal, and is
 * computed again each time. That takes time in proportion to the square of the bytes of the longer decimal. To look up
 * a decimal costs the same time, at whatever place in a key the decimal is.
 */
final class KeyHashes {
    /** Memory in bytes of an empty set or map, including its first table and the object that makes it unmodifiable. */
    static final int COLLECTION_BYTES = 192;

    /**
     * Memory in bytes of a key's entry in a linked set or map, including the part of the table that the entry takes.
     */
    private static final int ENTRY_BYTES = 64;

    /** Memory in bytes that a key takes in the tables of this class. */
    private static final int HASH_BYTES = 32;

    /**
     * The first keys of a set or map, up to this number, are not counted. But keys are counted from the first one on if
     * they contain sets or maps, if they are part of a key themselves, or if they may be far larger than their bytes in
     * the message. To compare up to 32 keys of any other kind takes at most eight times as long as to read them, while
     * counting would make honest small sets slower by a sixth to a half.
     */
    private static final int MIN_KEYS = 32;

    /**
     * Max number of components with which a key counts as small. A key with more components may be far larger than its
     * bytes in the message.
     */
    private static final int MAX_COMPONENTS = 8;

    /** Memory in bytes of the first tables of a {@code KeyHashes} that counts from its first key on. */
    private static final int TABLE_BYTES = 128;

    private static final int MIN_BITS = 2;

    /**
     * Cost of one comparison, in bytes compared, in addition to the bytes of the key. It is about the memory of a key
     * of two numbers.
     */
    private static final int COMPARISON_BYTES = 16;

    /**
     * Random odd number by which a hash is multiplied to find its index in the tables of this class. Senders do not
     * know the number, so they cannot choose hashes that collide in these tables.
     */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private static final int[] NO_HASHES = {};
    private static final float[] NO_COSTS = {};

    private int[] hashes = NO_HASHES;

    /**
     * For the hash at the same index of {@code hashes}: number of values, in all keys of this hash, with which one
     * value of another key may be compared. If the keys hold no sets, it is the number of these keys. It is 0 if there
     * is no key of the hash, and infinite if the number is too large for a float.
     */
    private float[] compared = NO_COSTS;

    /**
     * For the hash at the same index of {@code hashes}: number of times that a value of another key may be looked up in
     * all keys of this hash. The array is empty if {@code keys.costsBoth} is false, because then only comparing keys
     * costs anything.
     */
    private float[] lookedUp = NO_COSTS;

    /**
     * For the hash at the same index of {@code hashes}: cost of looking up all keys of this hash, and what they hold,
     * once. The array is empty if {@code keys.costsBoth} is false.
     */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    /**
     * Number of bytes that the key that was read last takes in the message. While a key is being read: position in the
     * message at which the key began.
     */
    private int bytes;
    /**
     * Memory in bytes of the messages in the key that was read last, as {@code In.madeBytes} counts it. While a key is
     * being read: result of {@code In.madeBytes} when the key began.
     */
    private long made;
    /**
     * Cost of looking up, once, what the key that was read last holds. While a key is being read: result of
     * {@code In.beginKey}.
     */
    private long lookupCost;
    /**
     * Number of values, in the key that was read last, with which one value of another key may be compared. While a key
     * is being read: result of {@code In.compared} when the key began, which is about the enclosing key.
     */
    private float keyCompared = 1;
    /**
     * Number of times that a value of another key may be looked up in the key that was read last. While a key is being
     * read: result of {@code In.lookedUp} when the key began, which is about the enclosing key.
     */
    private float keyLookedUp = 1;

    /** Hash of the key that is about to be added. It is set only if keys are counted. */
    private int hash;

    /**
     * Properties of the keys of a set or map that follow from the type of the keys.
     *
     * @param isDeep whether the keys contain sets or maps, so that a key's hash is computed from everything that these
     *     hold
     * @param mayBeLarge whether the keys may be far larger than their bytes in the message
     * @param costsBoth whether the cost of comparing two keys depends on both; otherwise it is at most that of the
     *     smaller key
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
            // Memory is asked for these bytes. They do not count towards Limits.memoryPerByte, the limit that grows
            // with the size of the message, because messages with many small sets of such keys already come near that
            // limit.
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Says whether a key may be far larger than its bytes in the message. A key with many components may be larger,
     * because components that are not sent are compared like any other. A key with a message in it may be larger,
     * because that message may have as few as two bytes. Keys that are ordered by decimals count as far larger too.
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

    /** Says whether the JDK's tables may order two keys of the same hash by their decimals. */
    private static boolean isOrderedByDecimals(Shape key) {
        if (!(key instanceof MessageType message)) {
            return key == WellKnown.DECIMAL;
        }
        return message.kind() == MessageType.Kind.ONEOF
                ? message.fields().stream().anyMatch(each -> isOrderedByDecimals(each.shape()))
                : Comparable.class.isAssignableFrom(message.javaClass()) && MessageType.holdsDecimal(message);
    }

    /**
     * Returns the memory in bytes that a key of this codec takes in its set or map, in addition to the memory of the
     * key itself.
     */
    static int overheadBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /**
     * Resets the fields that describe a key. This is done before an entry of a map is read, since the message may
     * contain no key for the entry. To compare such a key costs only {@code COMPARISON_BYTES}.
     */
    void noKey() {
        bytes = 0;
        made = 0;
        lookupCost = 0;
        keyCompared = 1;
        keyLookedUp = 1;
    }

    /** Begins the key that is read next. Stores what the counters of {@code In} say before the key. */
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

    /** Ends the key that has just been read. Computes the fields that describe the key. */
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
     * Counts the cost of adding the key that was read last to its set or map. Has to be called before the key is added.
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

    /** Returns the cost of comparing each value of the key once, in bytes compared. */
    private long compareCost() {
        return Math.max(COMPARISON_BYTES + bytes, made);
    }

    /**
     * Enters the key in the tables of this class. Has to be called after the key has been added to its set or map, if
     * the set or map did not have the key before.
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
