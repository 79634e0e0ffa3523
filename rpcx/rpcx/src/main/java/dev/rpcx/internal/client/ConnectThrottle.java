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
 * Limits the connection attempts to the instances of a service, whatever a registry names: at most {@code MAX_AT_ONCE}
 * are in progress at once, and they begin at a rate of at most {@code MAX_A_SECOND}. The others wait in the order in
 * which they came. Thread-safe.
 */
public final class ConnectThrottle {
    /**
     * Maximum number of connection attempts in progress. Each is a socket, which takes the whole connect time if
     * nothing answers.
     */
    public static final int MAX_AT_ONCE = 128;

    /**
     * Maximum rate at which connection attempts begin, per second. After a second without any as many may begin
     * together, and others follow at this rate. Each may ask a name server, and takes a handshake.
     */
    static final int MAX_A_SECOND = 256;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long EACH_NANOS = SECOND_NANOS / MAX_A_SECOND;

    private final ClientCore client;

    // guarded by this
    /** Waiting connection attempts in the order in which they came, each with the task that begins it. */
    private final Map<CompletableFuture<?>, Runnable> waiting = new LinkedHashMap<>();

    private final Set<CompletableFuture<?>> underWay = new LinkedHashSet<>();

    /** The part of a second by which this time lies ahead of now is the part of a second's attempts that has begun. */
    private long spentNanos;

    /** Whether a look is due at {@link #lookNanos} or before. */
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
     * Begins a connection attempt, at once or as soon as the limits allow it. An attempt that ends before does not
     * begin.
     *
     * @param start begins the attempt; runs on an event loop, at the base of the stack
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
            isTurn = underWay.remove(attempt) && !waiting.isEmpty();
        }
        if (isTurn) {
            // not called here, since attempts that end at once would nest on the stack
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
                // catches an Error too, since others wait behind the attempt
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
                // the attempt had ended before it was put here
                all.remove();
                continue;
            }
            long now = nanoTime();
            long early = spentNanos + EACH_NANOS - SECOND_NANOS - now;
            boolean isFull = underWay.size() >= MAX_AT_ONCE;
            if (isFull || early > 0) {
                // a look is timed also while MAX_AT_ONCE are in progress: the next attempt must not depend on the end
                // of one of them alone
                lookLater(now, isFull ? SECOND_NANOS : early);
                return null;
            }
            underWay.add(pending.attempt);
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

    /** Number of connection attempts that wait: for tests. */
    public synchronized int waiting() {
        return waiting.size();
    }
}
