package dev.rpcx.internal.ledger;

import java.util.BitSet;

/**
 * Assigns each connection of a server to one of {@link #COUNT} groups, by the peer's address. The server estimates the
 * limit for a method's calls from what these groups report, see {@code AdmissionLimit.Group}. This class is
 * thread-safe.
 *
 * <p>The groups are divided into ranges of equal size, and each address has one range. A single address has all groups,
 * two addresses have half of the groups each, and more than {@code COUNT / 2} addresses have one group each. With more
 * than {@link #COUNT} addresses, some addresses share a range. The connections of one address get the groups of its
 * range in rotation.
 *
 * <p>Each address has an index: the lowest number, from 0, that was free when the address came. The address keeps its
 * index until it goes. The number of ranges is the smallest power of two that is larger than the highest index in use,
 * but never more than {@link #COUNT}. For example, the indexes 0, 1 and 2 make four ranges. If the address with index 1
 * goes, there are still four ranges, because index 2 is still in use. Likewise, the addresses with the indexes 0 and
 * {@code COUNT} share a range even after all other addresses have gone. Two addresses have either the same range, or no
 * group in common.
 */
public final class AddressGroups {
    private static final int BITS = 4;

    public static final int COUNT = 1 << BITS;

    /** Indexes that addresses have. Guarded by {@code this}. */
    private final BitSet taken = new BitSet();

    /**
     * Number of groups that each address has now. Written while holding the lock of {@code this}, and read by any
     * thread.
     */
    private volatile int groupsPerAddress = COUNT;

    /**
     * Returns the lowest index that no address has, and reserves this index for a new address until {@link #give} is
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
     * Returns the number of the group to which a connection belongs now: at least 0, and less than {@link #COUNT}. The
     * number can change when {@link #groupsPerAddress} changes.
     *
     * @param index index of the connection's address; for a connection without an address, the connection's number
     * @param connection number of the connection, counted from 0 for each address
     */
    int groupOf(int index, int connection) {
        int last = groupsPerAddress - 1;
        // the bits of the index are reversed, so that successive indexes get ranges that are far apart
        int first = Integer.reverse(index) >>> 32 - BITS;
        return first & ~last | connection & last;
    }
}
