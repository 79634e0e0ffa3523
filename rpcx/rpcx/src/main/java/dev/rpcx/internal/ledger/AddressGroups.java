package dev.rpcx.internal.ledger;

import java.util.BitSet;

/**
 * Assigns the connections of a server to groups, by the peers' addresses. The limit of a method is estimated from what
 * these groups report, see {@code AdmissionLimit.Group}. Thread-safe.
 *
 * <p>Each address gets the lowest free index, and each index a range of the {@link #COUNT} groups. All ranges have the
 * same size: the largest power of two for which all indexes up to the highest one in use have separate ranges. With
 * more than {@link #COUNT} indexes, some share a range of one group. So a single address has all groups, two addresses
 * have half of them each, and from {@code COUNT / 2 + 1} addresses on, each has one. Successive connections of an
 * address get successive groups of its range, in a circle.
 *
 * <p>Two ranges are either equal or have no group in common.
 */
public final class AddressGroups {
    private static final int BITS = 4;

    public static final int COUNT = 1 << BITS;

    private final BitSet taken = new BitSet();
    private volatile int groupsPerAddress = COUNT;

    /** Returns the lowest free index, and reserves it until {@code give} is called. */
    synchronized int take() {
        int index = taken.nextClearBit(0);
        taken.set(index);
        fit();
        return index;
    }

    synchronized void give(int index) {
        taken.clear(index);
        fit();
    }

    private void fit() {
        int indexes = Math.max(1, Math.min(COUNT, taken.length()));
        groupsPerAddress = COUNT >>> 32 - Integer.numberOfLeadingZeros(indexes - 1);
    }

    /** Returns the number of groups that each address has now: a power of two, at most {@link #COUNT}. */
    public int groupsPerAddress() {
        return groupsPerAddress;
    }

    /**
     * Returns the current group of a connection: 0 or more, and less than {@link #COUNT}. It may change when
     * {@link #groupsPerAddress} changes.
     *
     * @param index index of the connection's address; the number of the connection if it has no address
     * @param connection number of the connection
     */
    int groupOf(int index, int connection) {
        int last = groupsPerAddress - 1;
        // the bits are reversed so that the ranges of successive indexes are far apart
        int first = Integer.reverse(index) >>> 32 - BITS;
        return first & ~last | connection & last;
    }
}
