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
    /** Room for so many methods is kept though none runs. */
    private static final int KEPT_METHODS = 32;

    private static final int FIRST_METHODS = 4;

    private final LongSupplier clock;
    private final Charge orphans;
    private final LeftBehind behind;

    /** What of {@link #behind} is in the share of this connection. */
    private long mark;

    private boolean isConnectionGone;
    private int all;

    /**
     * In pairs, in no order: the number of a method of which handlers run, and how many. Each of these handlers is
     * charged for, its call or itself, at far more than it takes here; so what a connection has called before keeps
     * nothing, and no handler is refused for it. Most connections run handlers of few methods at once.
     */
    private int[] ofMethods = new int[2 * FIRST_METHODS];

    /** The length of what {@link #ofMethods} holds. */
    private int end;

    /** @param clock in nanoseconds, as calls are timed by */
    RunningHandlers(Account account, LongSupplier clock) {
        this.clock = clock;
        this.orphans = account.charge(Resource.ORPHANS);
        this.behind = account.address == null ? new LeftBehind() : account.address.handlers;
        this.mark = behind.mark();
    }

    /** Takes a place for a handler of this method. @return false if the connection, or the server, has none */
    boolean enter(ServerMethod method, AdmissionLimit.Group limit) {
        int at = find(method);
        if (at == ofMethods.length) {
            ofMethods = Arrays.copyOf(ofMethods, 2 * at);
        }
        // those of a connection that is gone are among what it has left
        long own = behind.runningOf(mark) + (isConnectionGone ? 0 : all);
        if (!limit.enter((int) own, at < end ? ofMethods[at + 1] : 0)) {
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

    /** @return where the method stands; the end if none of its handlers runs */
    private int find(ServerMethod method) {
        int number = method.number();
        int at = 0;
        while (at < end && ofMethods[at] != number) {
            at += 2;
        }
        return at;
    }

    /** One that has entered counts no more. */
    void left(ServerMethod method) {
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
            // with the next method of which no handler runs any more
        }
    }

    /** Methods that there is room for: for tests. */
    int room() {
        return ofMethods.length / 2;
    }

    /** Once. */
    void connectionGone() {
        isConnectionGone = true;
        // there is no limit to these: they run already
        orphans.add(all);
        behind.leave(all, 0);
        mark = LeftBehind.ALL;
    }

    int all() {
        return all;
    }
}
