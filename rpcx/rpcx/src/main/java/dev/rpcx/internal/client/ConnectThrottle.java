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
 * Limits how fast a client connects to the instances of a service. At most {@link #MAX_AT_ONCE} tries to connect run
 * at the same time, and on average at most {@link #MAX_A_SECOND} begin in a second. Further tries wait in the order
 * in which they came. A {@link ClientCluster} has two objects of this class, each with limits of its own. This class is
 * thread-safe.
 */
public final class ConnectThrottle {
    /**
     * Maximum number of tries to connect that run at the same time. Each try holds a socket, for the full
     * connect timeout if the instance does not answer.
     */
    public static final int MAX_AT_ONCE = 128;

    /**
     * Maximum number of tries to connect that begin per second, on average. After a second without a try, this number
     * of tries can begin together, as far as {@link #MAX_AT_ONCE} allows. After such a burst, one try can begin every
     * {@link #EACH_NANOS}. The rate is limited because each try can query a name server and needs a handshake.
     */
    static final int MAX_A_SECOND = 256;

    private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long EACH_NANOS = SECOND_NANOS / MAX_A_SECOND;

    private final ClientCore client;

    // the following fields are guarded by this
    /**
     * The tries to connect that have not begun yet, in the order in which they came. The key is the future of the
     * try, and the value is the task that begins the try.
     */
    private final Map<CompletableFuture<?>, Runnable> waiting = new LinkedHashMap<>();

    private final Set<CompletableFuture<?>> inProgress = new LinkedHashSet<>();

    /**
     * The time, by the client's clock, at which the next try to connect would begin if the tries were spread evenly,
     * {@link #EACH_NANOS} apart. Each try that begins adds {@link #EACH_NANOS} to this time. If this time has passed,
     * the try adds {@link #EACH_NANOS} to the present time instead. A try waits as long as it would move this time to
     * more than one second after the present.
     */
    private long spentNanos;

    /** Whether a timer is set for the time {@link #lookNanos}. The timer begins the tries that the limits allow. */
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
     * Begins to connect as soon as the limits allow, unless {@code connecting} has been completed before.
     *
     * @param connecting future that is completed when the try to connect has ended
     * @param start task that begins the try; runs on an event loop, and never inside this method
     */
    void enter(CompletableFuture<?> connecting, Runnable start) {
        connecting.whenComplete((connected, failure) -> connectEnded(connecting));
        synchronized (this) {
            waiting.put(connecting, start);
        }
        look();
    }

    private void connectEnded(CompletableFuture<?> connecting) {
        boolean isNextDue;
        synchronized (this) {
            waiting.remove(connecting);
            isNextDue = inProgress.remove(connecting) && !waiting.isEmpty();
        }
        if (isNextDue) {
            // look() is not called directly, since the calls would nest on the stack if tries end immediately.
            client.execute(this::look);
        }
    }

    /** Begins the waiting tries to connect that the limits allow now. */
    private void look() {
        for (PendingConnect pending = next(); pending != null; pending = next()) {
            try {
                if (!client.execute(pending.start)) {
                    pending.connecting.completeExceptionally(new IllegalStateException("the client is closed"));
                }
            } catch (Throwable e) {
                // An Error is caught too, so that the tries that wait behind the failed one still begin.
                pending.connecting.completeExceptionally(e);
            }
        }
    }

    private record PendingConnect(CompletableFuture<?> connecting, Runnable start) {}

    private synchronized @Nullable PendingConnect next() {
        for (Iterator<Map.Entry<CompletableFuture<?>, Runnable>> all =
                        waiting.entrySet().iterator();
                all.hasNext(); ) {
            Map.Entry<CompletableFuture<?>, Runnable> first = all.next();
            PendingConnect pending = new PendingConnect(first.getKey(), first.getValue());
            if (pending.connecting.isDone()) {
                // If another thread has ended the try before enter() put it into the map, connectEnded() did not
                // find it there. Tested by
                // {@code ConnectThrottleTest.aTryThatHasEndedAlreadyDoesNotBeginAndHoldsUpNobody}.
                all.remove();
                continue;
            }
            long now = nanoTime();
            long early = spentNanos + EACH_NANOS - SECOND_NANOS - now;
            boolean isFull = inProgress.size() >= MAX_AT_ONCE;
            if (isFull || early > 0) {
                // The timer is set even if MAX_AT_ONCE tries are in progress: otherwise only the end of one of them
                // would begin the next.
                lookLater(now, isFull ? SECOND_NANOS : early);
                return null;
            }
            inProgress.add(pending.connecting);
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

    /** Returns the number of tries to connect that wait. Only tests use this method. */
    public synchronized int waiting() {
        return waiting.size();
    }
}
