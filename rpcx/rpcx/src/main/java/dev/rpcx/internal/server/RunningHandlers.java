package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.OrphanedWork;
import dev.rpcx.internal.ledger.Resource;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Handlers of one connection that run and are counted by their methods' limits, as its event loop knows them: in all,
 * and of each method, since a connection has a share of both. Handlers that run on when the connection is gone are in
 * the shares of those connections of its address that come later: see {@link OrphanedWork}. Event loop only; after the
 * loop's end, only with the connection's lock held.
 */
final class RunningHandlers {
    /** Number of methods for which room is kept even if no handler runs. */
    private static final int KEPT_METHODS = 32;

    private static final int FIRST_METHODS = 4;

    private final LongSupplier clock;
    private final Charge orphans;
    private final OrphanedWork behind;

    /** Mark that says what part of {@link #behind} is in the share of this connection. */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /**
     * Pairs, in no order: the number of a method of which handlers run, and how many of them run. Each of these
     * handlers, or its call, is charged for, at far more than its entry takes here; so no handler is refused for want
     * of room here, and methods that the connection called before keep no entry. Most connections run handlers of few
     * methods at once.
     */
    private int[] ofMethods = new int[2 * FIRST_METHODS];

    /** Number of elements of {@link #ofMethods} that are in use. */
    private int end;

    /** @param clock gives the nanoseconds that calls are timed by */
    RunningHandlers(Account account, LongSupplier clock) {
        this.clock = clock;
        this.orphans = account.charge(Resource.ORPHANS);
        this.behind = account.address == null ? new OrphanedWork() : account.address.handlers;
        this.mark = behind.mark();
    }

    /**
     * Admits and counts a handler of this method.
     *
     * @return false if the connection's share, or the limit, has no room for it
     */
    boolean admit(ServerMethod method, AdmissionLimit.Group limit) {
        int at = find(method);
        if (at == ofMethods.length) {
            ofMethods = Arrays.copyOf(ofMethods, 2 * at);
        }
        // the handlers of a connection that is gone are among what it has left behind
        long own = behind.runningOf(mark) + (isConnectionGone ? 0 : all);
        if (!limit.admit((int) own, at < end ? ofMethods[at + 1] : 0)) {
            limit.refused(clock.getAsLong());
            return false;
        }
        if (at == end) {
            ofMethods[at] = method.number();
            ofMethods[at + 1] = 0;
            end += 2;
        }
        all++;
        ofMethods[at + 1]++;
        if (isConnectionGone) {
            orphans.add(1);
            behind.leave(1, 0);
        }
        return true;
    }

    /** @return index of the method's pair; {@code end} if none of its handlers runs */
    private int find(ServerMethod method) {
        int number = method.number();
        int at = 0;
        while (at < end && ofMethods[at] != number) {
            at += 2;
        }
        return at;
    }

    /** Stops counting a handler that was admitted. */
    void handlerEnded(ServerMethod method) {
        int at = find(method);
        all--;
        ofMethods[at + 1]--;
        if (isConnectionGone) {
            orphans.release(1);
            behind.end();
        }
        if (ofMethods[at + 1] == 0) {
            end -= 2;
            ofMethods[at] = ofMethods[end];
            ofMethods[at + 1] = ofMethods[end + 1];
            shrink();
        }
    }

    private void shrink() {
        if (ofMethods.length <= 2 * KEPT_METHODS || end > ofMethods.length / 4) {
            return;
        }
        try {
            ofMethods = Arrays.copyOf(ofMethods, ofMethods.length / 2);
        } catch (OutOfMemoryError noMemory) {
            // it is tried again with the next method of which no handler runs any more
        }
    }

    /** Number of methods that there is room for. For tests. */
    int room() {
        return ofMethods.length / 2;
    }

    /** Notes that the connection is gone; called once. */
    void connectionGone() {
        isConnectionGone = true;
        // there is no limit to handlers that are left behind: they run already
        orphans.add(all);
        behind.leave(all, 0);
        mark = OrphanedWork.ALL;
    }

    int all() {
        return all;
    }
}
