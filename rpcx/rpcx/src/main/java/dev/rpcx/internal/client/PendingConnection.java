package dev.rpcx.internal.client;

import dev.rpcx.internal.CallbackFailures;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is established or being attempted, for all calls that wait for it. A call whose time is over is
 * removed again: a plain future would hold its callbacks until it ends itself, and a connection attempt may outlast
 * many calls. Thread-safe.
 *
 * @param <C> a connection on one of the wires
 */
public class PendingConnection<C> extends CompletableFuture<C> {
    /** A call that waits. */
    public interface Waiter<C> {
        /**
         * Told once how the wait has ended: with this connection, with another one or with a failure. Exactly one of
         * the two arguments is null.
         */
        void ended(@Nullable C connected, @Nullable Throwable failure);
    }

    /** Waiting calls, in the order in which they came. Guarded by itself. */
    private final Set<Waiter<C>> waiters = new LinkedHashSet<>();

    @SuppressWarnings("this-escape") // nothing can complete this before it has been made
    public PendingConnection() {
        whenComplete(this::end);
    }

    private void end(@Nullable C connected, @Nullable Throwable failure) {
        List<Waiter<C>> told;
        synchronized (waiters) {
            told = new ArrayList<>(waiters);
            waiters.clear();
        }
        for (Waiter<C> waiter : told) {
            tell(waiter, connected, failure);
        }
    }

    private static <C> void tell(Waiter<C> waiter, @Nullable C connected, @Nullable Throwable failure) {
        try {
            waiter.ended(connected, failure);
        } catch (Throwable e) {
            // the other calls are told all the same
            CallbackFailures.log(e);
        }
    }

    /** @return false if the wait has ended already, and {@code waiter} is not told */
    public boolean add(Waiter<C> waiter) {
        synchronized (waiters) {
            // a thread that ends the wait after this finds the waiter and tells it
            return !isDone() && waiters.add(waiter);
        }
    }

    /**
     * Gives another connection, which exists already, to the first waiting call, before this connection is established.
     *
     * @return false if no call waits
     */
    boolean tellFirst(C other) {
        Waiter<C> first;
        synchronized (waiters) {
            Iterator<Waiter<C>> all = waiters.iterator();
            if (!all.hasNext()) {
                return false;
            }
            first = all.next();
            all.remove();
        }
        tell(first, other, null);
        return true;
    }

    public boolean isWaitedFor() {
        synchronized (waiters) {
            return !waiters.isEmpty();
        }
    }

    /** @return whether the waiter has not been told, and will not be */
    boolean remove(Waiter<C> waiter) {
        synchronized (waiters) {
            return waiters.remove(waiter);
        }
    }

    /** Other connection for calls that have waited for this one, if this one has failed; null if there is none. */
    @Nullable
    C instead() {
        return null;
    }

    /** Called when a call no longer waits for this connection; other calls may still wait. */
    void abandon() {}
}
