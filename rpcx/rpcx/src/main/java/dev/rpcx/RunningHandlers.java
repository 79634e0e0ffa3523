package dev.rpcx;

import java.util.Arrays;

/**
 * The handlers of one connection that run and are counted by their methods' limits, as its event loop knows it: in all
 * and of each method, since a connection has a share of both. Those that go on when the connection is gone count for its
 * address until they end: whoever comes again has them in its share. Event loop only; after the loop's end, whoever holds
 * the connection's lock.
 */
final class RunningHandlers {
    private final Account account;
    private final Charge orphans;
    private boolean isConnectionGone;
    private int all;

    /** The index is the method's number; the array grows with the numbers that are called. */
    private int[] ofMethod = new int[8];

    RunningHandlers(Account account) {
        this.account = account;
        this.orphans = account.charge(Resource.ORPHANS);
    }

    /** Takes a place for a handler of this method. @return false if the connection, or the server, has none */
    boolean enter(ServerMethod method, AdmissionLimit limit) {
        int number = method.number();
        if (number >= ofMethod.length) {
            ofMethod = Arrays.copyOf(ofMethod, 2 * number);
        }
        int own = all + (int) account.heldOfAddress(Resource.ORPHANS);
        if (!limit.enter(own, ofMethod[number])) {
            return false;
        }
        all++;
        ofMethod[number]++;
        if (isConnectionGone) {
            orphans.add(1);
        }
        return true;
    }

    /** One that has entered counts no more. */
    void left(ServerMethod method) {
        all--;
        ofMethod[method.number()]--;
        if (isConnectionGone) {
            orphans.release(1);
        }
    }

    /** Once. */
    void connectionGone() {
        isConnectionGone = true;
        // there is no limit to these: they run already
        orphans.add(all);
    }

    int all() {
        return all;
    }
}
