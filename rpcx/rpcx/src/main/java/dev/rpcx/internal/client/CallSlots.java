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
     * Top of the stack of free slots. The lower half is the number of the top slot plus one, 0 if no slot is free. The
     * upper half counts the changes: a thread must notice if the same slot was taken and has come back to the top.
     */
    private final AtomicLong free = new AtomicLong();

    private volatile int limit = Wire.MAX_SLOTS;

    /**
     * Number of slots at or above the server's limit that are no longer used. They were created before the server sent
     * its limit.
     */
    private final AtomicInteger retiredSlots = new AtomicInteger();

    /**
     * Whether the event loop has to look for slots that their callers could not release. Set after
     * {@link ClientCall#orphan} or {@link ClientCall#unreleased}, by a plain store: a thread whose stack or memory is
     * exhausted can call no method.
     */
    public volatile boolean hasOrphans;

    /**
     * Incremented when {@link #trim} begins and when it ends, so it is odd while {@code trim} runs. Written under the
     * lock of {@code this}.
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
     * Returns whether all slots that the server allows are in use, so that {@link #acquire} would throw. Returns false
     * while {@link #trim} runs. Thread-safe. Keep it cheap: every call runs it, and changes the fields that it reads.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /**
     * Takes a free slot and begins a call in it. Thread-safe.
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
     * Frees the buffers that free slots keep. Thread-safe.
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
            // After a failure too, the free slots have to get back to their stack.
            while (taken != null) {
                ClientCall call = taken;
                taken = call.nextTrimmed;
                call.nextTrimmed = null;
                release(call);
            }
            trims = before + 2;
        }
    }

    /** Returns a number that changes each time a slot is released or is taken off the stack of free slots. */
    long changes() {
        return free.get();
    }

    /**
     * Releases the slots whose callers are gone. Event loop only, while it has the turn to read the socket.
     *
     * @return false if this has to be called again, after the event loop has handled the messages in the queue
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
     * Wakes the callers whose calls should have ended before this time. Thread-safe.
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
     * Takes the top slot off the stack of free slots. Skips and retires slots at or above the server's limit, in which
     * the server would refuse a call. After the compare-and-set that takes a usable slot, nothing may be called that
     * can fail: the slot would be lost.
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
     * Returns the call in this slot; null if the slot was never used. Event loop only. May also be null for a slot that
     * has just been created and whose call has not been queued.
     */
    public @Nullable ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds the futures of the one-way calls that have not ended to {@code found}. Thread-safe, though slots may be
     * reused meanwhile.
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

    /** Returns the number of slots that calls have. For tests: no other thread may use the slots at the same time. */
    public int taken() {
        int unused = 0;
        for (int slot = (int) free.get() - 1; slot >= 0; slot = calls[slot].nextFree - 1) {
            unused++;
        }
        return made.get() - retiredSlots.get() - unused;
    }

    /** Returns the number of slots that have been created: slots from this number on were never used. */
    public int createdCount() {
        return made.get();
    }
}
