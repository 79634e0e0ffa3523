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
 * A future of a connection for which calls wait. When the time of a call is over, the call can be removed. A plain
 * future would keep the callback of the call in memory. This class is thread-safe.
 *
 * @param <C> class of the connection, which depends on the wire
 */
public class PendingConnection<C> extends CompletableFuture<C> {
    /** A call that waits for a connection. */
    public interface Waiter<C> {
        /**
         * Called when the wait for a connection has ended, at most once for each {@code add}. If {@code remove} has
         * removed this waiter before, this method is not called.
         *
         * @param connected connection for the call, which can be another one than the call has waited for; null if the
         *     wait has failed
         * @param failure reason why the wait has failed; null if there is a connection
         */
        void ended(@Nullable C connected, @Nullable Throwable failure);
    }

    /**
     * The calls that wait for the connection, in the order in which they came. A thread must lock this set to use it.
     */
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
            // The other waiting calls are notified even if the callback of this call throws.
            CallbackFailures.log(e);
        }
    }

    /**
     * Adds a call that waits for this connection.
     *
     * @return false if the wait has already ended; in this case, {@code waiter} will not be called
     */
    public boolean add(Waiter<C> waiter) {
        synchronized (waiters) {
            // A thread that completes this future reads the set afterwards, under the same lock. So if the future
            // completes after isDone() has returned false, that thread finds the waiter and calls it. Otherwise the
            // call of the waiter could wait although this future is complete.
            return !isDone() && waiters.add(waiter);
        }
    }

    /**
     * Gives {@code other}, a connection that already exists, to the call that has waited longest.
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
     * Removes a call that no longer waits for this connection.
     *
     * @return true if {@code waiter} has not been called, and never will be
     */
    boolean remove(Waiter<C> waiter) {
        synchronized (waiters) {
            return waiters.remove(waiter);
        }
    }

    /**
     * Returns another connection for the waiting calls after this one could not be established. The result is null if
     * there is no other connection.
     */
    @Nullable
    C instead() {
        return null;
    }

    /**
     * Called after a call has stopped waiting for this connection. Does nothing, since other calls can still wait. A
     * subclass for which only one call waits can cancel the future here.
     */
    void abandon() {}
}
