package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.OrphanedWork;
import dev.rpcx.internal.ledger.Resource;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Counts the running handlers of one connection, except those on the event loop, in total and for each method. Handlers
 * that run on after their connection has gone count in the shares of later connections from the same address: see
 * {@link OrphanedWork}. Event loop only, until the loop has ended. Afterwards, any thread that holds the connection's
 * lock may use this object.
 */
final class RunningHandlers {
    /** When {@link #ofMethods} is shrunk, it keeps room for at least this many methods. */
    private static final int KEPT_METHODS = 32;

    private static final int FIRST_METHODS = 4;

    private final LongSupplier clock;
    private final Charge orphans;
    private final OrphanedWork orphanedWork;

    /**
     * Says which of the handlers in {@link #orphanedWork} count in the share of this connection: see <em>mark</em> in
     * {@link OrphanedWork}.
     */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /**
     * Pairs of integers, in no particular order: the number of a method that has running handlers, and the number of
     * these handlers. Needs no charge, since each handler or its call has been charged at far more bytes than a pair
     * takes.
     */
    private int[] ofMethods = new int[2 * FIRST_METHODS];

    /** Number of elements of {@link #ofMethods} that are in use: twice the number of pairs. */
    private int end;

    /**
     * Creates the counts of a new connection, which runs no handler.
     *
     * @param clock returns the time by which calls are timed, in nanoseconds
     */
    RunningHandlers(Account account, LongSupplier clock) {
        this.clock = clock;
        this.orphans = account.charge(Resource.ORPHANS);
        this.orphanedWork = account.address == null ? new OrphanedWork() : account.address.handlers;
        this.mark = orphanedWork.mark();
    }

    /**
     * Admits a handler of this method, and counts it.
     *
     * @return false if the connection's share, or the method's limit, has no room for the handler
     */
    boolean admit(ServerMethod method, AdmissionLimit.Group limit) {
        int at = find(method);
        if (at == ofMethods.length) {
            ofMethods = Arrays.copyOf(ofMethods, 2 * at);
        }
        // if the connection has gone, its handlers are counted by OrphanedWork already
        long own = orphanedWork.runningOf(mark) + (isConnectionGone ? 0 : all);
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
            orphanedWork.leave(1, 0);
        }
        return true;
    }

    /** Returns the index of the method's pair in {@link #ofMethods}; {@code end} if none of its handlers runs. */
    private int find(ServerMethod method) {
        int number = method.number();
        int at = 0;
        while (at < end && ofMethods[at] != number) {
            at += 2;
        }
        return at;
    }

    /** Stops counting a handler that was admitted, because it has ended. */
    void handlerEnded(ServerMethod method) {
        int at = find(method);
        all--;
        ofMethods[at + 1]--;
        if (isConnectionGone) {
            orphans.release(1);
            orphanedWork.end();
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
            // shrinking is tried again when the last running handler of another method has ended
        }
    }

    /** Returns the number of methods for which there is room. For tests. */
    int room() {
        return ofMethods.length / 2;
    }

    /**
     * Records that the connection has gone. From now on, its running handlers count as left behind. Called exactly
     * once.
     */
    void connectionGone() {
        isConnectionGone = true;
        // this charge has no limit, since the handlers that are left behind run already
        orphans.add(all);
        orphanedWork.leave(all, 0);
        mark = OrphanedWork.ALL;
    }

    int all() {
        return all;
    }
}
