package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.wire.Wire;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The slots of a connection: an array that fills from the bottom, and a stack of the free slots, so that few slots are
 * in use and those are warm in the caches. {@link #acquire} and {@link #release} may be called from any thread, and
 * take no locks.
 */
public final class CallSlots {
    private final ClientConnection connection;
    private final ClientCall[] calls = new ClientCall[Wire.MAX_SLOTS];
    private final AtomicInteger made = new AtomicInteger();

    /**
     * Top of the stack of free slots. Low half: number of the top slot plus one, 0 for none. High half: count of
     * changes, so that a slot that has come back to the top is not taken for the earlier top.
     */
    private final AtomicLong free = new AtomicLong();

    private volatile int limit = Wire.MAX_SLOTS;

    /**
     * Number of slots at or above the limit that were made before the server had told the limit, and that no call has
     * any more.
     */
    private final AtomicInteger retired = new AtomicInteger();

    /**
     * Set after {@link ClientCall#orphan} or {@link ClientCall#unreleased}, by a store alone: a thread whose stack or
     * memory is exhausted can call nothing. The event loop then looks through the slots.
     */
    public volatile boolean hasOrphans;

    /**
     * Count of begins and ends of {@link #trim}: odd while the free slots are off their stack. Written under the lock
     * of {@code this}.
     */
    private volatile int trims;

    public CallSlots(ClientConnection connection) {
        this.connection = connection;
    }

    /** Sets how many calls the server takes at once. */
    public void limit(int calls) {
        limit = Math.max(1, Math.min(calls, Wire.MAX_SLOTS));
    }

    public int limit() {
        return limit;
    }

    /**
     * Whether all slots that the server allows are in use, so that {@link #acquire} would throw. While the free slots
     * are being trimmed nobody knows, and the answer is false. Any thread; every call asks this, and every call changes
     * what is read here.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /** @throws RPCXException {@link RPCXException.Code#OVERLOADED} if all slots that the server allows are in use */
    public ClientCall acquire(long deadlineNanos) {
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
                throw LocalFailure.full(
                        limit + " calls are under way on one connection (expected: fewer, or more connections)");
            }
            // the free slots are being trimmed, and come back at once
            Thread.onSpinWait();
        }
    }

    /**
     * Gives back the buffers that free slots keep. Any thread.
     *
     * @return whether no call has a slot
     */
    public synchronized boolean trim() {
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
                    // there is no memory for a smaller buffer; the next slot may free some
                    ThreadTools.report(e);
                }
            }
            return count == made.get() - retired.get();
        } finally {
            // also where something above has failed: the slots are free
            while (taken != null) {
                ClientCall call = taken;
                taken = call.nextTrimmed;
                call.nextTrimmed = null;
                release(call);
            }
            trims = before + 2;
        }
    }

    /**
     * A number that changes each time a slot is taken or given back, except when a slot is taken for the first time.
     */
    long changes() {
        return free.get();
    }

    /**
     * Gives slots back whose callers have gone and could not do it themselves. On the event loop, while it has the turn
     * to read the socket.
     *
     * @return false if another look is needed, after what is being queued now
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

    /** Wakes all callers. When they park again they schedule a look at them, or park with a timeout. Any thread. */
    void wakeCallers() {
        for (int slot = 0, top = made.get(); slot < top; slot++) {
            ClientCall call = calls[slot];
            if (call != null && call.hasCaller()) {
                call.wake();
            }
        }
    }

    /**
     * Takes the top slot off the stack of free slots. A server refuses whatever comes in a slot at or above its limit,
     * so such a slot is not used again. Nothing that may fail is called after the exchange for a slot that is used: if
     * this method throws, no such slot has been taken off.
     *
     * @return null if no slot is free
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

    /**
     * Makes the next slot. If this method throws, no slot has been used up.
     *
     * @return null if the server allows no more slots
     */
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

    /** Puts a slot on the stack of free slots. If this method throws, the slot has not been given back. */
    public void release(ClientCall call) {
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

    /**
     * The call in this slot; null if the slot was never used. On the event loop, for a slot whose call has been queued;
     * another thread may miss a slot that was made just now.
     */
    public @Nullable ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds the futures of one-way calls that have not ended. From any thread: a slot may have its next call meanwhile.
     */
    public void addOneWay(List<CompletableFuture<?>> found) {
        for (int slot = 0; slot < createdCount(); slot++) {
            ClientCall call = at(slot);
            CompletableFuture<?> future = call == null ? null : call.oneWay();
            if (future != null) {
                found.add(future);
            }
        }
    }

    /** Number of slots that calls have, counted one by one. For tests, while nothing happens. */
    public int taken() {
        int unused = 0;
        for (int slot = (int) free.get() - 1; slot >= 0; slot = calls[slot].nextFree - 1) {
            unused++;
        }
        return made.get() - retired.get() - unused;
    }

    /** Number of slots that have been created: those at and above it were never used. */
    public int createdCount() {
        return made.get();
    }
}
