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
 * The slots of a connection: an array that is filled from index 0 upwards, and a stack of the free slots. So no more
 * slots are used than are needed, and these stay in the processor's caches. {@link #acquire} and {@link #release} take
 * no locks, and any thread may call them.
 */
public final class CallSlots {
    private final ClientConnection connection;
    private final ClientCall[] calls = new ClientCall[Wire.MAX_SLOTS];
    private final AtomicInteger made = new AtomicInteger();

    /**
     * Top of the stack of free slots. The lower half is the number of the top slot plus one, or 0 if no slot is free.
     * The upper half counts the changes. So a thread that has read the top notices if the same slot was taken and has
     * come back to the top.
     */
    private final AtomicLong free = new AtomicLong();

    private volatile int limit = Wire.MAX_SLOTS;

    /**
     * Number of retired slots. Such a slot was created before the server sent its limit, and has a number at or above
     * the limit. It is counted when no call has it any more.
     */
    private final AtomicInteger retiredSlots = new AtomicInteger();

    /**
     * Whether some callers may be gone without having given back their slots. The field is set after
     * {@link ClientCall#orphan} or {@link ClientCall#unreleased}. Setting it takes only a store, since a thread whose
     * stack or memory is exhausted can call no method. The event loop then looks through the slots.
     */
    public volatile boolean hasOrphans;

    /**
     * Number of times that {@link #trim} has begun or ended. The number is odd while the free slots are off their
     * stack. Written under the lock of {@code this}.
     */
    private volatile int trims;

    public CallSlots(ClientConnection connection) {
        this.connection = connection;
    }

    /** Sets how many calls the server takes at the same time. */
    public void limit(int calls) {
        limit = Math.max(1, Math.min(calls, Wire.MAX_SLOTS));
    }

    public int limit() {
        return limit;
    }

    /**
     * Whether all slots that the server allows are in use, so that {@link #acquire} would throw. Returns false while
     * {@link #trim} has taken the free slots off their stack, since then this is not known. Thread-safe: any thread may
     * call this. Every call runs this method, and every call changes the fields that it reads, so it reads only few
     * fields.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /**
     * Takes a free slot and begins a call in it. Thread-safe: any thread may call this.
     *
     * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if all slots that the server allows are in use
     */
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
                        limit + " calls are in flight on one connection (expected: fewer, or more connections)");
            }
            // trim() has taken the free slots, and gives them back in a moment
            Thread.onSpinWait();
        }
    }

    /**
     * Gives back the buffers that free slots keep. Thread-safe: any thread may call this.
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
                    // there is no memory for a smaller buffer; the next slot may free some memory
                    ThreadTools.report(e);
                }
            }
            return count == made.get() - retiredSlots.get();
        } finally {
            // The loop below also runs if something above has failed, so that the free slots get back to their stack.
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
     * Returns a number that changes each time a slot is taken or given back, except when a slot is taken for the first
     * time.
     */
    long changes() {
        return free.get();
    }

    /**
     * Gives back the slots whose callers are gone and could not give them back. Event loop only, while it has the turn
     * to read the socket.
     *
     * @return false if the slots have to be looked at again, after the event loop has handled the messages that are
     *     being queued now
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
     * Wakes the callers whose calls should have ended before this time. Thread-safe: any thread may call this.
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

    /**
     * Wakes all callers. Before a caller parks again, it makes sure that a check of the waiting callers is scheduled.
     * If none can be scheduled, the caller parks with a timeout. Thread-safe: any thread may call this.
     */
    void wakeCallers() {
        for (int slot = 0, top = made.get(); slot < top; slot++) {
            ClientCall call = calls[slot];
            if (call != null && call.hasCaller()) {
                call.wake();
            }
        }
    }

    /**
     * Takes the top slot off the stack of free slots. A server refuses a call in a slot at or above its limit. So such
     * a slot is taken off the stack and not used again, and the next slot is looked at. If this method throws, no slot
     * that can still be used is lost: after the compare-and-set that takes such a slot, nothing is called that may
     * fail.
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
                retiredSlots.incrementAndGet();
                call.trim();
            }
        }
    }

    /**
     * Creates the next slot. If this method throws, no slot number has been used up.
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
     * Returns the call in this slot; null if the slot was never used. Called on the event loop only, which finds each
     * slot whose call has been queued. For a slot that was created a moment ago, and whose call has not been queued,
     * the result may be null.
     */
    public @Nullable ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds the futures of one-way calls that have not ended to {@code found}. Thread-safe: any thread may call this. A
     * slot may get its next call while this method runs.
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

    /**
     * Returns the number of slots that calls have. It walks through the stack of free slots, so no other thread may use
     * the slots at the same time. For tests.
     */
    public int taken() {
        int unused = 0;
        for (int slot = (int) free.get() - 1; slot >= 0; slot = calls[slot].nextFree - 1) {
            unused++;
        }
        return made.get() - retiredSlots.get() - unused;
    }

    /** Returns the number of slots that have been created. Slots with this number or a larger one were never used. */
    public int createdCount() {
        return made.get();
    }
}
