package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Random;

/**
 * Counts the cost of comparing keys of a set or map that have the same hash, so that {@link In} can limit it. The JDK's
 * hash tables compare such a key with all others of its hash, unless the keys have an order; most records have none. A
 * sender that chooses 40,000 such keys could keep a processor busy for ten seconds with one message.
 *
 * <p>The cost of comparing a key is its number of bytes in the message, or the memory in bytes of its messages if that
 * is more: a component that is not sent is compared too. Keys that may be far larger than their bytes in the message
 * are counted from the first key on, and so are the elements of a set that is part of a key.
 *
 * <p>The JDK compares two keys that hold sets or maps by looking up the values of one key in the other, in either
 * direction. Each lookup computes the hash of the value again, and compares the value with all values that have this
 * hash. A key therefore has two numbers:
 *
 * <ul>
 *   <li>{@code compared}: with how many values of the key one value of another key may be compared. This is the largest
 *       number of values with one hash; for sets within sets, the numbers of all levels are multiplied.
 *   <li>{@code lookedUp}: how many times one value may be looked up in the key. This is the same product without the
 *       last level.
 * </ul>
 *
 * <p>The cost of comparing keys A and B is at most the sum of:
 *
 * <ul>
 *   <li>the cost of comparing each value of A once, multiplied by {@code compared} of B;
 *   <li>the cost of looking up each value of A once, multiplied by {@code lookedUp} of B;
 *   <li>the cost of looking up each value of B once, multiplied by {@code lookedUp} of A.
 * </ul>
 *
 * <p>Decimals that have the same hash are compared by their order. To compare two of about the same size, the JDK may
 * multiply one by a power of ten with as many digits as the longer one. This takes time in proportion to the square of
 * its bytes, wherever in a key the decimal is.
 */
final class KeyHashes {
    /** Memory in bytes of an empty set or map, with its first table and its unmodifiable wrapper. */
    static final int COLLECTION_BYTES = 192;

    /** Memory in bytes of a key's entry in a linked set or map, with its part of the table. */
    private static final int ENTRY_BYTES = 64;

    /** Memory in bytes that a key takes in the tables of this class. */
    private static final int HASH_BYTES = 32;

    /**
     * The first keys of a set or map, up to this number, are not counted. Comparing 32 keys takes at most eight times
     * as long as reading them; counting them would make small sets slower by a sixth to a half. Keys are counted from
     * the first one on if they contain sets or maps, are part of a key, or may be far larger than their bytes in the
     * message.
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
     * Cost of one comparison in addition to the bytes of the key, in bytes compared: about the memory of a key of two
     * numbers.
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
     * value of another key may be compared. Without sets in the keys, this is the number of keys. 0 if there is no key
     * of the hash; infinite if the number is too large for a float.
     */
    private float[] compared = NO_COSTS;

    /**
     * For the hash at the same index of {@code hashes}: how many times a value of another key may be looked up in the
     * keys of this hash. Empty if {@code keys.costsBoth} is false.
     */
    private float[] lookedUp = NO_COSTS;

    /**
     * For the hash at the same index of {@code hashes}: cost of looking up once all keys of this hash and what they
     * hold. Empty if {@code keys.costsBoth} is false.
     */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    /**
     * Number of bytes that the key read last takes in the message. While a key is being read: position of its start.
     */
    private int bytes;
    /**
     * Memory in bytes of the messages in the key read last. While a key is being read: {@code In.madeBytes} at its
     * start.
     */
    private long made;
    /**
     * Cost of looking up once what the key read last holds. While a key is being read: result of {@code In.beginKey}.
     */
    private long lookupCost;
    /**
     * Number of values in the key read last with which one value of another key may be compared. While a key is being
     * read: this number for the enclosing key.
     */
    private float keyCompared = 1;
    /**
     * How many times a value of another key may be looked up in the key read last. While a key is being read: this
     * number for the enclosing key.
     */
    private float keyLookedUp = 1;

    /** Hash of the key that is about to be added. It is set only if keys are counted. */
    private int hash;

    /**
     * Properties of a type of keys.
     *
     * @param isDeep whether the keys contain sets or maps; the hash of such a key is computed from everything in them
     * @param mayBeLarge whether a key may be far larger than its bytes in the message
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
            // These bytes do not count towards Limits.memoryPerByte: messages with many small sets of such keys already
            // come near that limit.
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Returns whether a key may be far larger than its bytes in the message: because of many components, which are
     * compared even if they are not sent, because of a message in the key, which may have only two bytes, or because
     * comparing its decimals is costly.
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

    /** Returns the memory in bytes that a key takes in its set or map, in addition to the key itself. */
    static int overheadBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /**
     * Resets the fields that describe a key. Called before a map entry is read, since an entry may be sent without its
     * key.
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
     * Counts the cost of adding the key read last to its set or map. Called before the key is added.
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
     * Records a key that has been added. Called only if the set or map did not have the key before.
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
