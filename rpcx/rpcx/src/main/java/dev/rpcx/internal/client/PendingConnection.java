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
 * A connection that is established or being attempted, for all calls that wait for it. A call is removed when its time
 * is over, while a plain future would keep the call's callback. Thread-safe.
 *
 * @param <C> class of the connection, on one of the two wires
 */
public class PendingConnection<C> extends CompletableFuture<C> {
    /** A call that waits for a connection. */
    public interface Waiter<C> {
        /**
         * Called exactly once, when the wait has ended, unless {@code remove} has removed the waiter before.
         *
         * @param connected this connection or another one; null if the wait has failed
         * @param failure reason for which the wait has failed; null if there is a connection
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
        List<Waiter<C>> ended;
        synchronized (waiters) {
            ended = new ArrayList<>(waiters);
            waiters.clear();
        }
        for (Waiter<C> waiter : ended) {
            endWait(waiter, connected, failure);
        }
    }

    private static <C> void endWait(Waiter<C> waiter, @Nullable C connected, @Nullable Throwable failure) {
        try {
            waiter.ended(connected, failure);
        } catch (Throwable e) {
            // the other calls are notified in any case
            CallbackFailures.log(e);
        }
    }

    /**
     * Adds a call that waits.
     *
     * @return false if the wait has ended already: {@code waiter} is not called in this case
     */
    public boolean add(Waiter<C> waiter) {
        synchronized (waiters) {
            // a thread that ends the wait after this finds the waiter and calls it
            return !isDone() && waiters.add(waiter);
        }
    }

    /**
     * Gives another connection, which exists already, to the first waiting call.
     *
     * @return false if no call waits
     */
    boolean giveToFirst(C other) {
        Waiter<C> first;
        synchronized (waiters) {
            Iterator<Waiter<C>> all = waiters.iterator();
            if (!all.hasNext()) {
                return false;
            }
            first = all.next();
            all.remove();
        }
        endWait(first, other, null);
        return true;
    }

    public boolean isWaitedFor() {
        synchronized (waiters) {
            return !waiters.isEmpty();
        }
    }

    /**
     * Removes a call that no longer waits.
     *
     * @return whether the waiter has not been called, and will not be
     */
    boolean remove(Waiter<C> waiter) {
        synchronized (waiters) {
            return waiters.remove(waiter);
        }
    }

    /**
     * Returns another connection for the calls that have waited for this one, after this one has failed; null for none.
     */
    @Nullable
    C instead() {
        return null;
    }

    /** Called when a call no longer waits for this connection. Other calls may still wait. */
    void abandon() {}
}
