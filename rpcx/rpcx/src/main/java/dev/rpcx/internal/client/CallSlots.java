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
 * All call slots of one connection. Each call in flight has one {@link ClientCall} of its own, called its slot, and the
 * slot's index is part of the call id. Slots are created as they are needed, in an array from index 0 upwards. Free
 * ones are on a stack: the slot that was released last is reused first, and is probably still in the processor's cache.
 *
 * <p>{@link #acquire} and {@link #release} are thread-safe, and take no lock.
 */
public final class CallSlots {
    private final ClientConnection connection;
    private final ClientCall[] calls = new ClientCall[Wire.MAX_SLOTS];
    private final AtomicInteger made = new AtomicInteger();

    /**
     * Top of the stack of free slots. The lower 32 bits are the index of the top slot plus one, or 0 if no slot is
     * free. The upper 32 bits are a version number, which every push and pop increments. Without it, a compare-and-set
     * could not notice that a slot has been taken and put back in between.
     */
    private final AtomicLong free = new AtomicLong();

    private volatile int limit = Wire.MAX_SLOTS;

    /**
     * Number of slots that are out of use because their index is not below the server's limit. There are such slots if
     * calls began before the server had sent its limit.
     */
    private final AtomicInteger retiredSlots = new AtomicInteger();

    /**
     * Whether the event loop has to search all slots for ones that their callers could not release. A caller whose
     * stack or memory is exhausted first marks its slot, by {@link ClientCall#orphan} or {@link ClientCall#unreleased},
     * and then sets this field. It does so by plain stores, since such a thread can call no method.
     */
    public volatile boolean hasOrphans;

    /**
     * Counter that shows whether {@link #trim} is running: odd while it is, even otherwise. It also shows whether
     * {@code trim} has run between two reads. Written under the lock of {@code this}.
     */
    private volatile int trims;

    public CallSlots(ClientConnection connection) {
        this.connection = connection;
    }

    /** Sets the maximum number of calls that the server takes at the same time on this connection. */
    public void limit(int calls) {
        limit = Math.max(1, Math.min(calls, Wire.MAX_SLOTS));
    }

    public int limit() {
        return limit;
    }

    /**
     * Returns whether every slot that the server allows is in use, so that {@link #acquire} would throw. While
     * {@link #trim} runs, the answer is false, since {@code trim} holds the free slots for a moment. Thread-safe. Every
     * call runs this method, so it has to be cheap.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /**
     * Takes a free slot, or creates one, and begins a call in it. Thread-safe.
     *
     * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if every slot that the server allows is in use
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
     * Frees the large buffers that free slots have kept for their next calls. Thread-safe.
     *
     * @return whether all slots were free
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

    /**
     * Returns a number that changes each time a slot is released, or one of the free slots is taken. The creation of a
     * slot does not change it.
     */
    long changes() {
        return free.get();
    }

    /**
     * Releases the slots that their callers could not release, because their stacks or memory were exhausted. Called
     * only on the event loop, and only while no caller's thread is reading the socket.
     *
     * @return false if some slots cannot be judged yet, since their calls may still be in the queue of messages to
     *     send. Call this again when the queue has been sent.
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
     * Wakes the threads that block for a call whose deadline was before the given time. Thread-safe.
     *
     * @param latestNanos only calls with deadlines before this time are overdue
     * @return whether any caller, overdue or not, still has a call here
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
     * Wakes all threads that block for a call. Each one then arranges anew how it is woken if the event loop does not
     * end its call in time. Before it parks again, it schedules a check by {@link OverdueCallers}, or else parks with a
     * timeout. Thread-safe.
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
     * Takes the top slot off the stack of free slots. The server would refuse a call in a slot whose index is not below
     * its limit, so such slots are taken out of use here. After the compare-and-set that takes a usable slot, call
     * nothing that can throw, since the slot would be lost.
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
     * Creates the slot with the next index. If this throws, the index is still available to the next caller.
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

    /**
     * Makes a slot available to other calls, by putting it on the stack of free slots. If this throws, the slot is not
     * on the stack.
     */
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
     * Returns the slot with this index, or null if there is none yet. It may also be null for a slot that another
     * thread has just created, if that slot's call has not been queued. Called only on the event loop.
     */
    public @Nullable ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds the futures of all one-way calls that have not ended to the list. Thread-safe. A slot may get another call
     * in the meantime, so the result may be slightly out of date.
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

    /** Returns the number of slots in use. Only for tests: no other thread may take or release slots meanwhile. */
    public int taken() {
        int unused = 0;
        for (int slot = (int) free.get() - 1; slot >= 0; slot = calls[slot].nextFree - 1) {
            unused++;
        }
        return made.get() - retiredSlots.get() - unused;
    }

    /**
     * Returns how many slots have been created. These are the slots with the indexes from 0 to this number minus one.
     */
    public int createdCount() {
        return made.get();
    }
}
