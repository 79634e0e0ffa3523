package dev.rpcx.internal.client;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Limits how fast a client connects to the instances of a service. At most {@link #MAX_AT_ONCE} attempts to connect run
 * at the same time, and on average at most {@link #MAX_A_SECOND} begin in a second. Further attempts wait in the order
 * in which they came. A {@link ClientCluster} has two objects of this class, each with limits of its own. This class is
 * thread-safe.
 */
public final class ConnectThrottle {
    /**
     * Maximum number of attempts to connect that run at the same time. Each attempt holds a socket, for the full
     * connect timeout if the instance does not answer.
     */
    public static final int MAX_AT_ONCE = 128;

    /**
     * Maximum average rate at which attempts to connect begin, per second. After a second without an attempt, this
     * number of attempts can begin together, and further ones follow at this rate. The rate is limited because each
     * attempt can query a name server and needs a handshake.
     */
    static final int MAX_A_SECOND = 256;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long EACH_NANOS = SECOND_NANOS / MAX_A_SECOND;

    private final ClientCore client;

    // the following fields are guarded by this
    /**
     * The attempts to connect that have not begun yet, in the order in which they came. The key is the future of the
     * attempt, and the value is the task that begins the attempt.
     */
    private final Map<CompletableFuture<?>, Runnable> waiting = new LinkedHashMap<>();

    private final Set<CompletableFuture<?>> inProgress = new LinkedHashSet<>();

    /**
     * The time, by the client's clock, at which the next attempt to connect would begin if the attempts were spread
     * evenly, {@link #EACH_NANOS} apart. Each attempt moves this time forward by {@link #EACH_NANOS}, counted from the
     * present if the time has passed already. An attempt waits if it would move the time to more than one second ahead
     * of the present.
     */
    private long spentNanos;

    /** Whether a timer is set that begins waiting attempts to connect at {@link #lookNanos} or earlier. */
    private boolean isTimed;

    private long lookNanos;

    public ConnectThrottle(ClientCore client) {
        this.client = client;
        this.spentNanos = nanoTime();
    }

    private long nanoTime() {
        return client.platform().ticker().nanoTime();
    }

    /**
     * Begins an attempt to connect as soon as the limits allow, unless {@code attempt} has been completed before.
     *
     * @param attempt future that is completed when the attempt to connect has ended
     * @param start task that begins the attempt; runs on an event loop, and never inside this method
     */
    void enter(CompletableFuture<?> attempt, Runnable start) {
        attempt.whenComplete((connected, failure) -> attemptEnded(attempt));
        synchronized (this) {
            waiting.put(attempt, start);
        }
        look();
    }

    private void attemptEnded(CompletableFuture<?> attempt) {
        boolean isNextDue;
        synchronized (this) {
            waiting.remove(attempt);
            isNextDue = inProgress.remove(attempt) && !waiting.isEmpty();
        }
        if (isNextDue) {
            // look() is not called directly, since the calls would nest on the stack if attempts end immediately.
            client.execute(this::look);
        }
    }

    /** Begins the waiting attempts to connect that the limits allow now. */
    private void look() {
        for (PendingAttempt pending = next(); pending != null; pending = next()) {
            try {
                if (!client.execute(pending.start)) {
                    pending.attempt.completeExceptionally(new IllegalStateException("the client is closed"));
                }
            } catch (Throwable e) {
                // An Error is caught too, so that the attempts that wait behind the failed one still begin.
                pending.attempt.completeExceptionally(e);
            }
        }
    }

    private record PendingAttempt(CompletableFuture<?> attempt, Runnable start) {}

    private synchronized @Nullable PendingAttempt next() {
        for (Iterator<Map.Entry<CompletableFuture<?>, Runnable>> all =
                        waiting.entrySet().iterator();
                all.hasNext(); ) {
            Map.Entry<CompletableFuture<?>, Runnable> first = all.next();
            PendingAttempt pending = new PendingAttempt(first.getKey(), first.getValue());
            if (pending.attempt.isDone()) {
                // If another thread has ended the attempt before enter() put it into the map, attemptEnded() did not
                // find it there. Tested by
                // {@code ConnectThrottleTest.anAttemptThatHasEndedAlreadyDoesNotBeginAndHoldsUpNobody}.
                all.remove();
                continue;
            }
            long now = nanoTime();
            long early = spentNanos + EACH_NANOS - SECOND_NANOS - now;
            boolean isFull = inProgress.size() >= MAX_AT_ONCE;
            if (isFull || early > 0) {
                // The timer is set even if MAX_AT_ONCE attempts are in progress: otherwise only the end of one of them
                // would begin the next.
                lookLater(now, isFull ? SECOND_NANOS : early);
                return null;
            }
            inProgress.add(pending.attempt);
            all.remove();
            spentNanos = Math.max(spentNanos - now, 0) + now + EACH_NANOS;
            return pending;
        }
        return null;
    }

    private void lookLater(long now, long wait) {
        boolean isEarlier = !isTimed || now + wait - lookNanos < 0;
        if (isEarlier && client.schedule(this::lookInTime, wait)) {
            isTimed = true;
            lookNanos = now + wait;
        }
    }

    private void lookInTime() {
        synchronized (this) {
            isTimed = false;
        }
        look();
    }

    /** Returns the number of attempts to connect that wait. Only tests use this method. */
    public synchronized int waiting() {
        return waiting.size();
    }
}
