package dev.rpcx;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is there or will be, for all calls that wait for it. A call whose time is over is taken off again:
 * a plain future would hold whatever has been hung on it until it ends itself, and an attempt to connect may outlast
 * many calls. Thread-safe.
 *
 * @param <C> a connection on one of the wires
 */
class Coming<C> extends CompletableFuture<C> {
    /** A call that waits. */
    interface Waiter<C> {
        /** Told once how the wait has ended, with this or with another one; exactly one of the two is null. */
        void ended(@Nullable C connected, @Nullable Throwable failure);
    }

    /** In the order in which they came. Guarded by itself. */
    private final Set<Waiter<C>> waiters = new LinkedHashSet<>();

    Coming() {
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
            // the other calls hear of it all the same
            CallbackFailures.log(e);
        }
    }

    /** @return false if the wait has ended already: then this waiter is not told */
    boolean add(Waiter<C> waiter) {
        synchronized (waiters) {
            // whoever ends the wait after this takes the waiter out
            return !isDone() && waiters.add(waiter);
        }
    }

    /**
     * Before this has ended: the first that waits takes what is there already.
     *
     * @return false if nobody waits
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

    boolean isWaitedFor() {
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

    /** What calls take that have waited for this, where it has failed; null if there is nothing else. */
    @Nullable
    C instead() {
        return null;
    }

    /** A call that has asked for this waits no longer; others may. */
    void abandon() {}
}
