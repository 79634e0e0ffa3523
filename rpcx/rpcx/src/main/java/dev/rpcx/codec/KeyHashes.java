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
 * <p>A key costs its bytes in the message, or the memory of its messages where that is more, since a component that is
 * not sent is compared like any other. Keys that may be far larger than their bytes are counted from the first on: a
 * message may repeat them as often as it likes, or have many small sets.
 *
 * <p>Two keys that hold sets or maps are compared by looking up what one holds in the other, and which of them is
 * looked up changes from level to level. Each lookup makes a hash anew, of whatever size, and compares with all that
 * have it. So a value within a key is compared with at most as many of the other key as have one hash in its place:
 * their number, multiplied over the levels of sets within sets. It is looked up as often, but for the last level. The
 * bound of what two keys cost is therefore what comparing the one takes, and what looking up both does, as often as the
 * other has it. Sets within keys are counted from their first element on.
 *
 * <p>The JDK's tables order decimals of one hash. For two that are about as large they bring the digits to one scale,
 * by a power of ten that is made anew and has as many digits as the longer one: that takes the square of its bytes.
 * Looking up a decimal costs that, wherever it is in a key.
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

    /** Odd, and not known to senders: they shall not choose what meets in our own table. */
    private static final int MULTIPLIER = new Random().nextInt() | 1;

    private static final int[] NO_HASHES = {};
    private static final float[] NO_COSTS = {};

    private int[] hashes = NO_HASHES;

    /**
     * With how many values of all keys of the hash that stands in the same place one may be compared: the number of
     * these keys where they hold no sets; 0 where there is none. Infinite where there are too many for a number.
     */
    private float[] compared = NO_COSTS;

    /** How often a value may be looked up in all keys of the same hash; empty where only a key's comparing counts. */
    private float[] lookedUp = NO_COSTS;

    /** What looking up all keys of the same hash, and what they hold, costs once; empty likewise. */
    private float[] costs = NO_COSTS;

    private final Keys keys;
    private final int minKeys;
    private int used;
    private int bits;

    // of the key that has been read last; of the one that is being read, where it began

    private int bytes;
    private long made;
    private long within;
    private float keyCompared = 1;
    private float keyLookedUp = 1;

    /** Hash of the key that is about to be added, where keys are counted. */
    private int hash;

    /**
     * What is known of the keys of a set or map by their type.
     *
     * @param isDeep whether they contain sets or maps, whose hash is made of all that they hold
     * @param isWide whether they may be far larger than their bytes
     * @param isMutual whether comparing two costs what each of them does, and not only what the smaller one does
     */
    record Keys(boolean isDeep, boolean isWide, boolean isMutual) {
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
            // asked for, and not held against the message's size, which many small sets of such keys come near
            in.take(TABLE_BYTES);
        }
    }

    /**
     * Whether a key may be far larger than its bytes: components that are not sent are compared like any other, and a
     * message within a key may be of two bytes.
     */
    private static boolean isWide(Shape key) {
        if (isOrderedByDecimals(key)) {
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

    /** Whether the JDK's tables may compare the decimals of two keys of one hash by their order. */
    private static boolean isOrderedByDecimals(Shape key) {
        if (!(key instanceof MessageType message)) {
            return key == WellKnown.DECIMAL;
        }
        return message.kind() == MessageType.Kind.ONEOF
                ? message.fields().stream().anyMatch(each -> isOrderedByDecimals(each.shape()))
                : Comparable.class.isAssignableFrom(message.javaClass()) && MessageType.holdsDecimal(message);
    }

    /** Memory that such a key costs its set or map, beside its own. */
    static int placeBytes(ElementCodec key) {
        return key.hasOrder() ? ENTRY_BYTES : ENTRY_BYTES + HASH_BYTES;
    }

    /** The key of an entry that may have none in the message: then it costs nothing but itself. */
    void noKey() {
        bytes = 0;
        made = 0;
        within = 0;
        keyCompared = 1;
        keyLookedUp = 1;
    }

    /** A key begins, which is read next. */
    void beginKey(In in) {
        bytes = in.position();
        made = in.made();
        if (keys.isMutual) {
            within = in.beginKey();
            keyCompared = in.compared();
            keyLookedUp = in.lookedUp();
            in.meetings(1, 1);
        }
    }

    /** The key has been read. */
    void endKey(In in) {
        bytes = in.position() - bytes;
        made = in.made() - made;
        if (keys.isMutual) {
            within = in.endKey(within);
            float outerCompared = keyCompared;
            float outerLookedUp = keyLookedUp;
            keyCompared = in.compared();
            keyLookedUp = in.lookedUp();
            in.meetings(outerCompared, outerLookedUp);
        }
    }

    /** Before the key that has been read is added to so many others. */
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
            double cost = (double) compared[at] * size();
            if (keys.isMutual) {
                cost += (double) lookedUp[at] * (size() + within) + (double) keyLookedUp * costs[at];
            }
            in.comparisons(cost);
        }
    }

    /** What comparing the key's values costs, each once. */
    private long size() {
        return Math.max(COMPARISON_BYTES + bytes, made);
    }

    /** After the same key has been added, which was not there before. */
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
        if (keys.isMutual) {
            lookedUp[at] += keyLookedUp;
            costs[at] += size() + within;
            outerLookedUp = Math.max(outerLookedUp, lookedUp[at]);
        }
        in.meetings(Math.max(in.compared(), compared[at]), outerLookedUp);
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
        if (keys.isMutual) {
            lookedUp = new float[length];
            costs = new float[length];
        }
        for (int i = 0; i < oldHashes.length; i++) {
            if (oldCompared[i] != 0) {
                int at = place(oldHashes[i]);
                hashes[at] = oldHashes[i];
                compared[at] = oldCompared[i];
                if (keys.isMutual) {
                    lookedUp[at] = oldLookedUp[i];
                    costs[at] = oldCosts[i];
                }
            }
        }
    }
}
