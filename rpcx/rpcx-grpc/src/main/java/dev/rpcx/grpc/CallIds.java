package dev.rpcx.grpc;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.wire.Wire;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * Gives each call its id on the native wire, and finds the call of an id. An id is a slot and the slot's generation, as
 * {@code rpcx/spec/wire.md} describes. The lowest free slot is taken, so that the tables stay short. Event loop only.
 */
final class CallIds {
    /** Result of {@link #next} if there is no free slot. No call has this id. */
    static final int NONE = 0;

    /** Number of slots for which a connection is not charged, as for a native connection. */
    private static final int UNCHARGED_SLOTS = 64;

    /** Memory, in bytes, that the two tables take for a slot. */
    private static final int SLOT_BYTES = 8;

    private static final int FIRST_SLOTS = 8;
    private static final int MAX_GENERATION = 0xFFFF;
    private static final int GENERATION_SHIFT = 16;

    private final int max;
    private final Charge tableBytes;
    private final BitSet taken = new BitSet();
    private @Nullable GrpcCall[] calls = new GrpcCall[FIRST_SLOTS];
    private int[] generations = new int[FIRST_SLOTS];

    /** @param max number of calls that the server allows at a time */
    CallIds(int max, Charge tableBytes) {
        this.max = max;
        this.tableBytes = tableBytes;
    }

    /** Returns an id for a new call, which has to be given to {@link #put}; {@link #NONE} if no slot is free. */
    int next() {
        int slot = taken.nextClearBit(0);
        if (slot >= max || !hasSlot(slot)) {
            return NONE;
        }
        generations[slot] = generations[slot] % MAX_GENERATION + 1;
        return generations[slot] << GENERATION_SHIFT | slot;
    }

    private boolean hasSlot(int slot) {
        if (slot < calls.length) {
            return true;
        }
        int length = 2 * calls.length;
        if (!tableBytes.set((long) SLOT_BYTES * Math.max(0, length - UNCHARGED_SLOTS))) {
            return false;
        }
        calls = Arrays.copyOf(calls, length);
        generations = Arrays.copyOf(generations, length);
        return true;
    }

    void put(GrpcCall call) {
        int slot = call.id() & Wire.SLOT_MASK;
        taken.set(slot);
        calls[slot] = call;
    }

    @Nullable
    GrpcCall find(int id) {
        int slot = id & Wire.SLOT_MASK;
        GrpcCall call = slot < calls.length ? calls[slot] : null;
        return call != null && call.id() == id ? call : null;
    }

    void free(GrpcCall call) {
        int slot = call.id() & Wire.SLOT_MASK;
        taken.clear(slot);
        calls[slot] = null;
    }

    /** Releases the charge for the tables, when the connection has ended. */
    void close() {
        tableBytes.release();
    }
}
