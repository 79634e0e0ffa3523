package dev.rpcx;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The slots of a connection: an array that fills from the bottom, and a stack of those that are free, so that few are in use and those
 * are warm. {@link #acquire} and {@link #release} from any thread, without locks.
 */
final class CallSlots {
    private final ClientConnection connection;
    private final ClientCall[] calls = new ClientCall[Wire.MAX_SLOTS];
    private final AtomicInteger made = new AtomicInteger();

    /** Low half: the top slot plus one, 0 for none. High half: counts changes, so that a top that came back is not taken for the old one. */
    private final AtomicLong free = new AtomicLong();

    private volatile int limit = Wire.MAX_SLOTS;

    /** Slots at or above the limit that were made before the server had told it, and that no call has any more. */
    private final AtomicInteger retired = new AtomicInteger();

    /**
     * Set behind {@link ClientCall#orphan} and {@link ClientCall#unreleased}, by one store: a thread whose stack or
     * memory is at its end can call nothing. The event loop then looks through the slots.
     */
    volatile boolean hasOrphans;

    /** Begins and ends of {@link #trim}: odd while the free slots are off their list. Written under the lock. */
    private volatile int trims;

    CallSlots(ClientConnection connection) {
        this.connection = connection;
    }

    /** How many calls the server takes at once. */
    void limit(int calls) {
        limit = Math.max(1, Math.min(calls, Wire.MAX_SLOTS));
    }

    int limit() {
        return limit;
    }

    /**
     * Whether all slots that the server allows are in use: {@link #acquire} would throw. From any thread, on the way of
     * every call, which changes what this reads. While the free slots are being trimmed nobody knows, and it says no.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /** @throws RPCXException {@link RPCXException.Code#OVERLOADED} if all slots that the server allows are in use */
    ClientCall acquire(long deadlineNanos) {
        ClientCall call = pop();
        if (call == null) {
            call = acquireSlowly();
        }
        boolean hasBegun = false;
        try {
            call.begin(deadlineNanos);
            hasBegun = true;
        } finally {
            if (!hasBegun) {
                call.unreleased = true;
                hasOrphans = true;
            }
        }
        return call;
    }

    private ClientCall acquireSlowly() {
        if (hasOrphans) {
            connection.lookForOrphans();
        }
        while (true) {
            int before = trims;
            ClientCall call = pop();
            if (call == null) {
                call = make();
            }
            if (call != null) {
                return call;
            }
            if (before == trims && (before & 1) == 0) {
                throw OwnEnd.full(
                        limit + " calls are under way on one connection (expected: fewer, or more connections)");
            }
            // those that are free are being trimmed, and come back at once
            Thread.onSpinWait();
        }
    }

    /** Gives back what the free slots keep. From any thread. @return whether there is no slot that a call has */
    synchronized boolean trim() {
        int before = trims;
        trims = before + 1;
        ClientCall taken = null;
        int count = 0;
        try {
            for (ClientCall call = pop(); call != null; call = pop()) {
                call.nextTrimmed = taken;
                taken = call;
                count++;
                try {
                    call.trim();
                } catch (Throwable e) {
                    // where there is no memory for a smaller buffer; the next one may free some
                    ThreadTools.report(e);
                }
            }
            return count == made.get() - retired.get();
        } finally {
            // in any case: the slots are free
            while (taken != null) {
                ClientCall call = taken;
                taken = call.nextTrimmed;
                call.nextTrimmed = null;
                release(call);
            }
            trims = before + 2;
        }
    }

    /** Another number each time that a slot is taken or given back, but for the first time that it is taken. */
    long changes() {
        return free.get();
    }

    /**
     * Gives slots back whose callers have gone and could not do it themselves. On the event loop, which reads the
     * socket.
     *
     * @return false if it has to look once more, after what is being queued now
     */
    boolean freeOrphans() {
        hasOrphans = false;
        boolean isDone = true;
        for (int slot = 0, top = made.get(); slot < top; slot++) {
            ClientCall call = calls[slot];
            if (call != null) {
                isDone &= call.freeIfOrphan();
            }
        }
        if (!isDone) {
            hasOrphans = true;
        }
        return isDone;
    }

    /**
     * Wakes callers whose calls should have ended before this time. From any thread.
     *
     * @return whether any caller waits
     */
    boolean wakeOverdue(long latestNanos) {
        boolean isAny = false;
        for (int slot = 0, top = made.get(); slot < top; slot++) {
            ClientCall call = calls[slot];
            if (call != null && call.hasCaller()) {
                isAny = true;
                call.wakeIfOverdue(latestNanos);
            }
        }
        return isAny;
    }

    /** Wakes all callers, which then wait on their own. From any thread. */
    void wakeCallers() {
        for (int slot = 0, top = made.get(); slot < top; slot++) {
            ClientCall call = calls[slot];
            if (call != null && call.hasCaller()) {
                call.wake();
            }
        }
    }

    /**
     * Nothing that may fail is called behind the exchange: what this throws has taken nothing off. A server refuses
     * whatever comes in a slot at or above its limit, so such a slot is not used again.
     */
    private @Nullable ClientCall pop() {
        while (true) {
            long top = free.get();
            int slot = (int) top - 1;
            if (slot < 0) {
                return null;
            }
            ClientCall call = calls[slot];
            if (free.compareAndSet(top, next(top, call.nextFree))) {
                if (slot < limit) {
                    return call;
                }
                retired.incrementAndGet();
                call.trim();
            }
        }
    }

    /** As {@link #pop}: what this throws has used up no slot. */
    private @Nullable ClientCall make() {
        while (true) {
            int slot = made.get();
            if (slot >= limit) {
                return null;
            }
            ClientCall call = new ClientCall(connection, slot);
            if (made.compareAndSet(slot, slot + 1)) {
                calls[slot] = call;
                return call;
            }
        }
    }

    /** As {@link #pop}: what this throws has not given the slot back. */
    void release(ClientCall call) {
        while (true) {
            long top = free.get();
            call.nextFree = (int) top;
            if (free.compareAndSet(top, next(top, call.slot + 1))) {
                return;
            }
        }
    }

    private static long next(long top, int slotPlusOne) {
        return (top >>> 32) + 1 << 32 | slotPlusOne;
    }

    /** The call in this slot, if the slot was ever used. On the event loop, for a slot whose call has been queued. */
    @Nullable
    ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds the futures of one-way calls that have not ended. From any thread: a slot may have its next call meanwhile.
     */
    void addOneWay(List<CompletableFuture<?>> found) {
        for (int slot = 0; slot < top(); slot++) {
            ClientCall call = at(slot);
            CompletableFuture<?> future = call == null ? null : call.oneWay();
            if (future != null) {
                found.add(future);
            }
        }
    }

    /** Slots that a call has, counted one by one: for tests, while nothing happens. */
    int taken() {
        int unused = 0;
        for (int slot = (int) free.get() - 1; slot >= 0; slot = calls[slot].nextFree - 1) {
            unused++;
        }
        return made.get() - retired.get() - unused;
    }

    /** Slots at and above this were never used. */
    int top() {
        return made.get();
    }
}
