package dev.rpcx.internal.server;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.OrphanedWork;
import dev.rpcx.internal.ledger.Resource;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Counts the running handlers of one connection, in total and for each method. Handlers on the event loop are not
 * counted. Handlers that still run when their connection has gone count in the shares of connections that come later
 * from the same address: see {@link OrphanedWork}.
 *
 * <p>Event loop only, until the event loop has ended. Afterwards, any thread that holds the connection's lock may use
 * this object.
 */
final class RunningHandlers {
    /** Minimum number of methods for which {@link #ofMethods} keeps room when it is shrunk. */
    private static final int KEPT_METHODS = 32;

    private static final int FIRST_METHODS = 4;

    private final LongSupplier clock;
    private final Charge orphans;
    private final OrphanedWork orphanedWork;

    /**
     * Number of handlers that gone connections had ever left behind at this connection's address when the connection
     * came. {@link #orphanedWork} computes from this number how many of these handlers still run; they count in the
     * connection's share. {@link OrphanedWork#ALL} if the connection has gone too.
     */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /**
     * Number of running handlers of each method, as pairs of integers in no particular order. The first integer of a
     * pair is the number of a method that has running handlers; the second is how many of its handlers run.
     *
     * <p>The array is not charged, since each handler or its call has been charged for far more bytes than a pair
     * takes.
     */
    private int[] ofMethods = new int[2 * FIRST_METHODS];

    /**
     * Number of elements of {@link #ofMethods} that are in use: twice the number of methods that have running handlers.
     */
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
     * @return false if the handler is refused, because the connection's share or the limit of the method has no room
     *     for it
     */
    boolean admit(ServerMethod method, AdmissionLimit.Group limit) {
        int at = find(method);
        if (at == ofMethods.length) {
            ofMethods = Arrays.copyOf(ofMethods, 2 * at);
        }
        // if the connection has gone, OrphanedWork counts the connection's own handlers already
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

    /**
     * Returns the index of the method's pair in {@link #ofMethods}; {@code end} if the method has no running handler.
     */
    private int find(ServerMethod method) {
        int number = method.number();
        int at = 0;
        while (at < end && ofMethods[at] != number) {
            at += 2;
        }
        return at;
    }

    /** Stops counting a handler that {@link #admit} has admitted, because it has ended or will not start. */
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

    /** Returns the number of methods for which {@link #ofMethods} has room without growing. For tests. */
    int room() {
        return ofMethods.length / 2;
    }

    /**
     * Records that the connection has gone. Called exactly once. From now on, its running handlers count in the shares
     * of connections that come later from the same address.
     */
    void connectionGone() {
        isConnectionGone = true;
        // this charge has no limit: the handlers run already, so it is too late to refuse them
        orphans.add(all);
        orphanedWork.leave(all, 0);
        mark = OrphanedWork.ALL;
    }

    int all() {
        return all;
    }
}
