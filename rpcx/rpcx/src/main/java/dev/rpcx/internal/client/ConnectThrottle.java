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
 * Limits the connection attempts to the instances of a service: at most {@code MAX_AT_ONCE} attempts at the same time,
 * and at most {@code MAX_A_SECOND} a second. Other attempts wait in the order in which they came. Thread-safe.
 */
public final class ConnectThrottle {
    /**
     * Maximum number of connection attempts in progress. Each has a socket, for the full connect timeout if nothing
     * answers.
     */
    public static final int MAX_AT_ONCE = 128;

    /**
     * Maximum rate at which connection attempts begin, per second. After a second without an attempt, this number of
     * attempts may begin together. Each attempt may ask a name server and needs a handshake.
     */
    static final int MAX_A_SECOND = 256;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long EACH_NANOS = SECOND_NANOS / MAX_A_SECOND;

    private final ClientCore client;

    // the following fields are guarded by this
    /** Waiting connection attempts in the order in which they came, each with the task that begins it. */
    private final Map<CompletableFuture<?>, Runnable> waiting = new LinkedHashMap<>();

    private final Set<CompletableFuture<?>> inProgress = new LinkedHashSet<>();

    /**
     * Time up to which the rate is used up: each attempt moves it forward by {@code EACH_NANOS}. If it is half a second
     * ahead of the present time, half of the attempts of one second may still begin.
     */
    private long spentNanos;

    /** Whether a timer is set that looks at the waiting attempts at {@link #lookNanos} or earlier. */
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
     * Begins a connection attempt as soon as the limits allow it, unless the attempt ends before.
     *
     * @param start task that begins the attempt; runs on an event loop, at the base of the stack
     */
    void enter(CompletableFuture<?> attempt, Runnable start) {
        attempt.whenComplete((connected, failure) -> leave(attempt));
        synchronized (this) {
            waiting.put(attempt, start);
        }
        look();
    }

    private void leave(CompletableFuture<?> attempt) {
        boolean isTurn;
        synchronized (this) {
            waiting.remove(attempt);
            isTurn = inProgress.remove(attempt) && !waiting.isEmpty();
        }
        if (isTurn) {
            // Not called directly: if attempts end immediately, the calls would nest on the stack.
            client.execute(this::look);
        }
    }

    /** Begins the waiting connection attempts that may begin now. */
    private void look() {
        for (PendingAttempt pending = next(); pending != null; pending = next()) {
            try {
                if (!client.execute(pending.start)) {
                    pending.attempt.completeExceptionally(new IllegalStateException("the client is closed"));
                }
            } catch (Throwable e) {
                // An Error is caught too, since other attempts wait behind this one.
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
                // the attempt had ended before it was put into the map
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

    /** Returns the number of connection attempts that wait. For tests. */
    public synchronized int waiting() {
        return waiting.size();
    }
}
