package dev.rpcx;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Attempts to connect to the instances of a service: so many are under way at once, and so many begin in a second,
 * whatever a registry names. The others wait for their turn in the order in which they came. Thread-safe.
 */
final class Openings {
    /** Each is a socket, which takes the whole time to connect where nothing answers. */
    static final int MAX_AT_ONCE = 128;

    /** As many may begin together after a second without any. Each may ask a name server, and takes a handshake. */
    static final int MAX_A_SECOND = 256;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long EACH_NANOS = SECOND_NANOS / MAX_A_SECOND;

    private final ClientCore client;

    // guarded by this
    /** What begins each. */
    private final Map<CompletableFuture<?>, Runnable> waiting = new LinkedHashMap<>();

    private final Set<CompletableFuture<?>> underWay = new LinkedHashSet<>();

    /** Where it lies ahead of now, that much of a second's attempts has begun. */
    private long spentNanos;

    /** A look is due at {@link #lookNanos} or before. */
    private boolean isTimed;

    private long lookNanos;

    Openings(ClientCore client) {
        this.client = client;
        this.spentNanos = nanoTime();
    }

    private long nanoTime() {
        return client.platform().ticker().nanoTime();
    }

    /**
     * An attempt begins, at once or when it is its turn; not if it ends before.
     *
     * @param start on an event loop, whose stack is at its begin
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
            // not here: attempts that end at once would stand on each other's stack
            client.execute(this::look);
        }
    }

    /** Begins whatever may begin. */
    private void look() {
        for (Turn turn = next(); turn != null; turn = next()) {
            try {
                if (!client.execute(turn.start)) {
                    turn.attempt.completeExceptionally(new IllegalStateException("the client is closed"));
                }
            } catch (Throwable e) {
                // an Error too: others wait behind the attempt
                turn.attempt.completeExceptionally(e);
            }
        }
    }

    private record Turn(CompletableFuture<?> attempt, Runnable start) {}

    private synchronized @Nullable Turn next() {
        for (Iterator<Map.Entry<CompletableFuture<?>, Runnable>> all =
                        waiting.entrySet().iterator();
                all.hasNext(); ) {
            Map.Entry<CompletableFuture<?>, Runnable> first = all.next();
            Turn turn = new Turn(first.getKey(), first.getValue());
            if (turn.attempt.isDone()) {
                // before it was put here
                all.remove();
                continue;
            }
            long now = nanoTime();
            long early = spentNanos + EACH_NANOS - SECOND_NANOS - now;
            boolean isFull = underWay.size() >= MAX_AT_ONCE;
            if (isFull || early > 0) {
                // also where as many as may be are under way: no turn hangs on the end of one of them alone
                lookLater(now, isFull ? SECOND_NANOS : early);
                return null;
            }
            underWay.add(turn.attempt);
            all.remove();
            spentNanos = Math.max(spentNanos - now, 0) + now + EACH_NANOS;
            return turn;
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

    /** Attempts that wait for their turn: for tests. */
    synchronized int waiting() {
        return waiting.size();
    }
}
