package dev.parley.load;

import java.util.concurrent.atomic.LongAdder;

/**
 * How long clients were there, and how long they were busy with a request, however it ended, within a window. Little's law of a closed loop
 * says that the two are the same: clients = rate × mean time in the system, with time at rest counted as such. What clips a request at
 * the window's edges is its own times, so that long requests in short windows are no exception. Any number of threads.
 */
final class Occupancy {
    private final LongAdder busyNs = new LongAdder();
    private final LongAdder thereNs = new LongAdder();
    private volatile long beganNs = Long.MAX_VALUE;
    private volatile long endedNs = Long.MAX_VALUE;

    /** The window begins: what ended before does not count. */
    void begin(long nowNs) {
        if (beganNs == Long.MAX_VALUE) {
            beganNs = nowNs;
        }
    }

    void end(long nowNs) {
        endedNs = nowNs;
    }

    /** A request was in flight, or a client at rest by intention. */
    void busy(long fromNs, long toNs) {
        busyNs.add(within(fromNs, toNs));
    }

    /** A client was there. */
    void there(long fromNs, long toNs) {
        thereNs.add(within(fromNs, toNs));
    }

    private long within(long fromNs, long toNs) {
        return beganNs == Long.MAX_VALUE ? 0 : Math.max(0, Math.min(toNs, endedNs) - Math.max(fromNs, beganNs));
    }

    /** NaN before any client has left. */
    double share() {
        long there = thereNs.sum();
        return there == 0 ? Double.NaN : (double) busyNs.sum() / there;
    }
}
