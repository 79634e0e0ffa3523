package dev.rpcx.internal.ledger;

import java.util.BitSet;

/**
 * Puts the connections of a server into groups of peers, by the addresses of the peers. The limit of a method learns
 * from what these groups report: see {@code AdmissionLimit.Group}. Thread-safe.
 *
 * <p>Each address gets the lowest index that is free, and each index has a range of groups. All ranges have the same
 * size: the largest power of two with which every index, up to the highest index that is taken, has a range of its own.
 * If there are more than {@link #COUNT} indexes, several indexes share a range. Successive connections of an address
 * get successive groups of its range, and after the last group the first one again. So a single address has all groups,
 * and each of two addresses has half of them. If the number of addresses is more than half of {@link #COUNT}, each
 * address has one group.
 *
 * <p>Two ranges are either the same or have no group in common, whatever addresses come and go. An address that goes
 * and returns gets the lowest free index, like any other address.
 */
public final class AddressGroups {
    private static final int BITS = 4;

    public static final int COUNT = 1 << BITS;

    private final BitSet taken = new BitSet();
    private volatile int groupsPerAddress = COUNT;

    /**
     * Takes the lowest index that is free, and returns it. The index belongs to an address until {@code give} is
     * called.
     */
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
     * Returns the id of the group to which a connection belongs now: 0 or more, and less than {@link #COUNT}. After
     * {@link #groupsPerAddress} has changed, the connection may belong to another group.
     *
     * @param index index of the connection's address; the number of the connection if it has no address
     * @param connection number of the connection
     */
    int groupOf(int index, int connection) {
        int last = groupsPerAddress - 1;
        // the bits of the index are reversed, so that the ranges of successive indexes are as far apart as possible
        int first = Integer.reverse(index) >>> 32 - BITS;
        return first & ~last | connection & last;
    }
}
