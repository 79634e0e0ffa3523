package dev.rpcx;

import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * The handlers of one connection that run and are counted by their methods' limits, as its event loop knows it: in all
 * and of each method, since a connection has a share of both. Those that go on when the connection is gone are in
 * the shares of those connections of its address that come later: see {@link LeftBehind}. Event loop only; after the
 * loop's end, whoever holds the connection's lock.
 */
final class RunningHandlers {
    /** Methods that are counted without a charge: no more than a connection holds at rest. */
    private static final int UNCHARGED_METHODS = 64;

    private final LongSupplier clock;
    private final Charge orphans;
    private final LeftBehind behind;

    /** What of {@link #behind} is in the share of this connection. */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /** The index is the method's number; the array grows with the numbers that are called. */
    private int[] ofMethod = new int[8];

    private final Charge table;

    /** @param clock in nanoseconds, as calls are timed by */
    RunningHandlers(Account account, LongSupplier clock) {
        this.clock = clock;
        this.orphans = account.charge(Resource.ORPHANS);
        this.behind = account.address == null ? new LeftBehind() : account.address.handlers;
        this.mark = behind.mark();
        this.table = account.charge(Resource.TABLE_BYTES);
    }

    /** Takes a place for a handler of this method. @return false if the connection, or the server, has none */
    boolean enter(ServerMethod method, AdmissionLimit limit) {
        int number = method.number();
        if (number >= ofMethod.length && !grow(2 * number)) {
            return false;
        }
        // those of a connection that is gone are among what it has left
        long own = behind.runningOf(mark) + (isConnectionGone ? 0 : all);
        if (!limit.enter((int) own, ofMethod[number])) {
            limit.refused(clock.getAsLong());
            return false;
        }
        all++;
        ofMethod[number]++;
        if (isConnectionGone) {
            orphans.add(1);
            behind.leave(1, 0);
        }
        return true;
    }

    private boolean grow(int methods) {
        if (!table.set((long) Integer.BYTES * Math.max(0, methods - UNCHARGED_METHODS))) {
            return false;
        }
        ofMethod = Arrays.copyOf(ofMethod, methods);
        return true;
    }

    /** One that has entered counts no more. */
    void left(ServerMethod method) {
        all--;
        ofMethod[method.number()]--;
        if (isConnectionGone) {
            orphans.release(1);
            behind.end();
            forgetMethods();
        }
    }

    /** Once. */
    void connectionGone() {
        isConnectionGone = true;
        // there is no limit to these: they run already
        orphans.add(all);
        behind.leave(all, 0);
        mark = LeftBehind.ALL;
        forgetMethods();
    }

    /** The last handler of a connection that is gone takes the table with it. */
    private void forgetMethods() {
        if (all == 0) {
            ofMethod = new int[0];
            table.release();
        }
    }

    int all() {
        return all;
    }
}
