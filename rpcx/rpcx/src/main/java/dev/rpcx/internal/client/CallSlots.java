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
 * The call slots of one connection. A slot is a {@link ClientCall} object that is used by one call after another; the
 * slot's index is part of the call id. Slots are created when they are needed, with indexes from 0 upwards. Free slots
 * are on a stack. The slot that was released last is used first, since it is probably still in the processor's cache.
 *
 * <p>{@link #acquire} and {@link #release} are thread-safe, and take no lock.
 */
public final class CallSlots {
    private final ClientConnection connection;

    /**
     * The slots, by index. The thread that creates a slot first raises {@link #made}, and then stores the slot here.
     * Between these two steps, another thread can find null here. A thread that takes the slot from {@link #free}
     * always finds the slot. So does the event loop when it handles a message of a call in the slot.
     */
    private final ClientCall[] calls = new ClientCall[Wire.MAX_SLOTS];

    /**
     * The number of slots that have been created. Any thread raises it by a compare-and-set, so no two slots get the
     * same index. Tested by {@code RacesTest.aSlotIsHadByOneCallAtATimeAlsoWhileSlotsAreTrimmed}.
     */
    private final AtomicInteger made = new AtomicInteger();

    /**
     * The top of the stack of free slots, together with a version number. The lower 32 bits are the index of the top
     * slot plus one, or 0 if no slot is free. The upper 32 bits are the version number, which every push and pop
     * increments. Any thread pushes and pops by a compare-and-set, so no two calls get the same slot. Tested by
     * {@code SlotsRace} and {@code CallSlotsTest.noSlotIsHadTwiceAndNoIdTwiceInARow}.
     *
     * <p>Without the version number, a thread that pops could overlook that other threads have taken the top slot and
     * put it back. The slot that was below it can have a call now, but the thread would make that slot the top of the
     * stack. Tested by {@code CallSlotsAloneTest.aSlotThatCameBackIsToldFromOneThatWasNeverGone}.
     */
    private final AtomicLong free = new AtomicLong();

    /** The maximum number of calls at the same time. Stored by the event loop, and read by any thread. */
    private volatile int limit = Wire.MAX_SLOTS;

    /**
     * The number of created slots that {@link #pop} has taken out of use, because their indexes are not below the
     * server's limit. There are such slots if calls began before the server had sent its limit. Any thread that pops
     * raises the number.
     */
    private final AtomicInteger retiredSlots = new AtomicInteger();

    /**
     * Whether the event loop has to search for slots that could not be released. A slot cannot be released if its
     * thread, usually the caller's thread, has no stack or memory left to call a method. The thread then only stores
     * two fields: first {@link ClientCall#orphan} or {@link ClientCall#unreleased}, and then this field. The event loop
     * clears this field before it searches. So either this search finds the slot, or the field is set again and a later
     * search finds the slot. In another order, the slot could be lost.
     */
    public volatile boolean hasOrphans;

    /**
     * A counter that is odd while {@link #trim} runs, and even otherwise. Because {@code trim} takes all free slots for
     * a moment, a thread can find no free slot although slots are free. So the thread searches again if the counter is
     * odd, or has changed during the search. Without this, the call would be refused.
     *
     * <p>Any thread writes the counter, under the lock of {@code this}. {@code trim} makes the counter odd before it
     * takes the first slot, and even after it has put the last slot back. Tested by
     * {@code CallSlotsAloneTest.whileSlotsAreTrimmedNobodyIsToldThatThereAreNone}.
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
     * Returns whether every slot that the server allows is in use, so that {@link #acquire} would throw. Thread-safe.
     * Most calls run this method, so it has to be cheap.
     *
     * <p>While {@link #trim} runs, the result is always false, since {@code trim} takes the free slots from the stack
     * for a moment. If {@code trim} ends while this method runs, the result can be wrong: it can be true although slots
     * are free.
     */
    boolean isFull() {
        return (int) free.get() == 0 && made.get() >= limit && (trims & 1) == 0;
    }

    /**
     * Takes a free slot, or creates a slot if none is free, and begins a call in that slot. Thread-safe.
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
                throw LocalFailure.full("all " + limit
                        + " slots of one connection are taken (expected: fewer calls, or more connections)");
            }
            // The thread looks again a moment later, since trim() may have held the free slots during the search above.
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
                    // The failure is only reported, and the loop goes on. If memory is short, the next slot may free
                    // some memory.
                    ThreadTools.report(e);
                }
            }
            return count == made.get() - retiredSlots.get();
        } finally {
            // The slots that the loop above has taken from the stack of free slots go back to it here, even if a
            // statement above has failed.
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
     * Returns a number that changes each time a slot is released or a free slot is taken. The creation of a slot does
     * not change the number.
     */
    long changes() {
        return free.get();
    }

    /**
     * Releases the slots that their callers could not release, because the callers' stacks or memory were exhausted.
     * Called on the event loop or, after the event loop has ended, on another thread. While a caller's thread is
     * reading the socket, this method must not be called.
     *
     * @return false if a call in such a slot may still be in the queue of messages to send. Then call this method again
     *     when the queue has been sent or dropped.
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
     * @param latestNanos a call is overdue if its deadline was before this time
     * @return whether any call on the connection still has a caller, even if the call is not overdue
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
     * Wakes all threads that block for a call in one of these slots. A thread whose call has not ended parks again.
     * Before it parks, the thread makes sure that a check by {@link OverdueCallers} is scheduled. If no check can be
     * scheduled, the thread parks with a timeout. Thread-safe.
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
     * Takes the top slot off the stack of free slots. If the slot's index is not below the server's limit, the server
     * would refuse a call in the slot, so the slot goes out of use and the next slot is taken. Call nothing that can
     * throw between the compare-and-set and the return of a slot, since the slot would be lost.
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
     * Creates the slot with the next index. If this method throws, the next caller gets the same index.
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
     * Puts a slot on the stack of free slots, so that another call can take it. If this method throws, the slot is not
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
     * Returns the slot with the given index, or null if there is no such slot yet. The result can also be null for a
     * slot that another thread has just created, and whose first call has not been queued for sending. Called on the
     * event loop, and by {@link #addOneWay} on any thread.
     */
    public @Nullable ClientCall at(int slot) {
        return slot < calls.length ? calls[slot] : null;
    }

    /**
     * Adds to {@code found} the futures of all one-way calls that use these slots and have not ended. The result may be
     * slightly out of date, since calls begin and end while this method runs. Thread-safe.
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

    /** Returns the number of slots that have been created. Their indexes go from 0 to this number minus one. */
    public int createdCount() {
        return made.get();
    }
}
