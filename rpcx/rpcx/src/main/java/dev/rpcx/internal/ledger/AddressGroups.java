package dev.rpcx.internal.ledger;

import java.util.BitSet;

/**
 * Says which group of peers a connection belongs to, for what a method's limit learns: see
 * {@code AdmissionLimit.Group}. Each address gets the lowest place that is free. Each place has a range of groups, as
 * large as the highest place leaves room for; the connections of an address take turns in its range. So a single
 * address has all groups, each of two addresses has half of them, and where there are more than half as many addresses
 * as groups each has one. Ranges never overlap in part, whatever addresses come and go, and an address that leaves and
 * returns gets one of the free places, as any other. Thread-safe.
 */
public final class AddressGroups {
    private static final int BITS = 4;

    public static final int COUNT = 1 << BITS;

    private final BitSet taken = new BitSet();
    private volatile int groupsPerAddress = COUNT;

    /** @return the lowest place that is free, which belongs to the address until it is given back */
    synchronized int take() {
        int place = taken.nextClearBit(0);
        taken.set(place);
        fit();
        return place;
    }

    synchronized void give(int place) {
        taken.clear(place);
        fit();
    }

    private void fit() {
        int places = Math.max(1, Math.min(COUNT, taken.length()));
        groupsPerAddress = COUNT >>> 32 - Integer.numberOfLeadingZeros(places - 1);
    }

    /** Number of groups that each address has now: a power of two, at most {@link #COUNT}. */
    public int groupsPerAddress() {
        return groupsPerAddress;
    }

    /**
     * @return number of the group, from 0 to below {@link #COUNT}; it may be another one when
     *     {@link #groupsPerAddress} has changed
     */
    int groupOf(int place, int connection) {
        int last = groupsPerAddress - 1;
        // with their bits reversed, successive places are as far from each other as can be
        int first = Integer.reverse(place) >>> 32 - BITS;
        return first & ~last | connection & last;
    }
}
