package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.OrphanedWork;
import dev.rpcx.internal.ledger.Resource;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Counts the running handlers of one connection, in total and for each method. An admitted handler counts as running
 * even while it waits for a thread. Handlers on the event loop are not counted. When the connection has gone, those of
 * its handlers that still run are also counted in {@link OrphanedWork}. So later connections from the same address may
 * run fewer handlers.
 *
 * <p>Only the event loop may use this object until the event loop has ended. Afterwards, any thread that holds the
 * connection's lock may use it.
 */
final class RunningHandlers {
    /** Minimum number of methods for which {@link #ofMethods} still has room after it has shrunk. */
    private static final int MIN_KEPT_METHODS = 32;

    private static final int FIRST_METHODS = 4;

    private final LongSupplier clock;
    private final Charge orphans;
    private final OrphanedWork orphanedWork;

    /**
     * Number of handlers that had been orphaned at the address when this connection came. A handler is orphaned if it
     * outlasts its connection. The number includes handlers that have ended, but only those that still run count in
     * this connection's share: see {@link OrphanedWork#runningOf}. For example, if the mark is 10 and 7 orphaned
     * handlers have ended, 3 handlers count.
     *
     * <p>After this connection has gone too, the mark is {@link OrphanedWork#ALL}. From then on, all orphaned handlers
     * from this address count, including this connection's own.
     */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /**
     * Number of running handlers of each method. Each method that has running handlers takes two elements: the number
     * that identifies the method, and the number of its running handlers. The methods are in no particular order.
     *
     * <p>The ledger does not charge for this array, since each call has been charged for far more bytes than two
     * elements take.
     */
    private int[] ofMethods = new int[2 * FIRST_METHODS];

    /** Number of elements of {@link #ofMethods} in use: twice the number of methods that have running handlers. */
    private int end;

    /**
     * Creates the counts of a new connection, which runs no handler yet.
     *
     * @param clock returns the current time, in nanoseconds, by the clock that measures how long calls take
     */
    RunningHandlers(Account account, LongSupplier clock) {
        this.clock = clock;
        this.orphans = account.charge(Resource.ORPHANS);
        this.orphanedWork = account.address == null ? new OrphanedWork() : account.address.handlers;
        this.mark = orphanedWork.mark();
    }

    /**
     * Admits a handler of this method and counts it, or refuses it.
     *
     * @return false if the handler is refused, because the connection's share, the limit of the method or the maximum
     *     for all methods has no room for it
     */
    boolean admit(ServerMethod method, AdmissionLimit.Group limit) {
        int at = find(method);
        if (at == ofMethods.length) {
            ofMethods = Arrays.copyOf(ofMethods, 2 * at);
        }
        // After the connection has gone, runningOf() counts the connection's own handlers too, so they are not added
        // again.
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
            orphanedWork.add(1, 0);
        }
        return true;
    }

    /**
     * Returns the index of the method's first element in {@link #ofMethods}, or {@code end} if the method has no
     * running handler.
     */
    private int find(ServerMethod method) {
        int number = method.number();
        int at = 0;
        while (at < end && ofMethods[at] != number) {
            at += 2;
        }
        return at;
    }

    /** Stops counting a handler that {@link #admit} has admitted, because the handler has ended or will not start. */
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
        if (ofMethods.length <= 2 * MIN_KEPT_METHODS || end > ofMethods.length / 4) {
            return;
        }
        try {
            ofMethods = Arrays.copyOf(ofMethods, ofMethods.length / 2);
        } catch (OutOfMemoryError noMemory) {
            // The larger array stays in use. The next call of shrink() tries again to make it smaller.
        }
    }

    /** Returns the number of methods for which {@link #ofMethods} has room without growing. For tests. */
    int room() {
        return ofMethods.length / 2;
    }

    /**
     * Records that the connection has gone. Must be called exactly once. From now on, handlers of the connection that
     * still run count in the shares of later connections from the same address.
     */
    void connectionGone() {
        isConnectionGone = true;
        // This charge cannot be refused, since the handlers run already.
        orphans.add(all);
        orphanedWork.add(all, 0);
        mark = OrphanedWork.ALL;
    }

    int all() {
        return all;
    }
}
