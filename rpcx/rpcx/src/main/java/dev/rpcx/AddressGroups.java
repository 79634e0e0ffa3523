package dev.rpcx;

import java.util.BitSet;

/**
 * Which group of peers a connection is of, for what a method's limit learns: see {@link AdmissionLimit.Group}. Each
 * address has the lowest place that is free, and each place a range of groups, as large as the highest place leaves
 * room for; the connections of an address take turns in its range. So one address has all groups, of two each has half
 * of them, and of more than half as many as there are groups each has one. Ranges never overlap in part, whatever comes
 * and goes, and an address that leaves and returns finds no other place than the free ones. Thread-safe.
 */
final class AddressGroups {
    private static final int BITS = 4;

    static final int COUNT = 1 << BITS;

    private final BitSet taken = new BitSet();
    private volatile int each = COUNT;

    /** @return the lowest place that is free, which is this one's until it is given back */
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
        each = COUNT >>> 32 - Integer.numberOfLeadingZeros(places - 1);
    }

    /** How many groups an address has now: a power of two, at most {@link #COUNT}. */
    int each() {
        return each;
    }

    /** @return from 0 to below {@link #COUNT}, another one when {@link #each} has changed */
    int groupOf(int place, int connection) {
        int last = each - 1;
        // places in the order of their reversed bits are as far from each other as can be
        int first = Integer.reverse(place) >>> 32 - BITS;
        return first & ~last | connection & last;
    }
}
