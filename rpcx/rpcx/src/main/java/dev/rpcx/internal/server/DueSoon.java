package dev.rpcx.internal.server;

import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Set of those calls of a connection that have a slot and will soon reach one of their time limits. A connection with a
 * table of more than 64 slots usually scans this set, and seldom all its calls. Without the set, a client with many
 * calls could cause a scan of all calls each time that one call reaches its limit. A connection with a smaller table
 * always scans all its calls.
 *
 * <p>A scan of all calls fills the set with the calls that are due within {@code SPAN_NANOS}, which is 1 s. The
 * connection also adds calls that begin after the scan. If more than {@value #MAX_CALLS} calls are due within the span,
 * the set shortens the span. When the span is over, the connection has to scan all its calls again.
 *
 * <p>Used only on the event loop.
 */
final class DueSoon {
    /** Result of {@link Calls#left} for a call that has ended. */
    static final long NEVER = Long.MAX_VALUE / 2;

    static final long SPAN_NANOS = 1_000_000_000;
    static final int MAX_CALLS = 128;
    private static final int FIRST = 16;
    private static final int[] NONE = {};

    /** Says how much time a call has left. Some implementations also end a call that has no time left. */
    interface Calls {
        /**
         * Returns the time from {@code nowNanos} until the call with this id reaches one of its time limits.
         *
         * @return nanoseconds; 0 or less if the call has reached a limit and has not been ended; {@link #NEVER} if the
         *     call has ended or does not have to be checked again
         */
        long left(int id, long nowNanos);
    }

    private final Calls calls;
    private final LongSupplier clock;
    private int[] ids = NONE;
    private int count;

    /** Whether the set contains all calls that are due before {@link #untilNanos}. */
    private boolean isComplete;

    private long untilNanos;

    /**
     * Whether calls were left out of the set because they are not due before {@link #untilNanos}. The first of these
     * calls is due at {@link #laterNanos}, unless it has ended meanwhile.
     */
    private boolean isAnyLater;

    private long laterNanos;
    private boolean isScanning;

    /**
     * Creates an empty set, which a scan of all calls has to fill.
     *
     * @param calls says how much time a call has left; unlike the argument of {@link #scan}, it ends no call
     */
    DueSoon(Calls calls, LongSupplier clock) {
        this.calls = calls;
        this.clock = clock;
    }

    /** Returns whether the set contains all calls that are due now, so that scanning the set is enough. */
    boolean isComplete(long nowNanos) {
        return isComplete && untilNanos - nowNanos > 0;
    }

    /**
     * Empties the set before a scan of all calls. During the scan, the caller has to {@link #add add} each call that
     * has not ended.
     */
    void begin(long nowNanos) {
        count = 0;
        isAnyLater = false;
        untilNanos = nowNanos + SPAN_NANOS;
        isComplete = true;
    }

    /** Empties the set. Until {@link #begin} is called, every scan has to cover all calls. */
    void forget() {
        isComplete = false;
        count = 0;
    }

    /**
     * Adds a call that is due at {@code dueNanos}, except in three cases:
     *
     * <ul>
     *   <li>If {@code isComplete} is false, nothing happens, since the next scan covers all calls anyway.
     *   <li>If the call is not due before {@link #untilNanos}, only {@code dueNanos} is noted.
     *   <li>If no room can be made for the call, {@code isComplete} becomes false.
     * </ul>
     *
     * <p>A call can be added again with an earlier time.
     */
    void add(int id, long dueNanos) {
        if (!isComplete) {
            return;
        }
        if (dueNanos - untilNanos < 0 && count == ids.length) {
            makeRoom();
        }
        if (isComplete && dueNanos - untilNanos < 0) {
            ids[count++] = id;
        } else {
            addLater(dueNanos);
        }
    }

    private void addLater(long dueNanos) {
        if (!isAnyLater || dueNanos - laterNanos < 0) {
            isAnyLater = true;
            laterNanos = dueNanos;
        }
    }

    private void makeRoom() {
        // If no room can be made for the call, the set stays incomplete, and the next scan covers all calls.
        isComplete = false;
        if (ids.length < MAX_CALLS) {
            try {
                ids = Arrays.copyOf(ids, Math.max(FIRST, 2 * ids.length));
                isComplete = true;
            } catch (OutOfMemoryError none) {
                // The call cannot be added. It is not missed, since the next scan covers all calls.
            }
        } else if (!isScanning) {
            long now = clock.getAsLong();
            keepDueInSpan(calls, now);
            while (count > MAX_CALLS / 2 && untilNanos - now > 1) {
                untilNanos = now + (untilNanos - now) / 2;
                keepDueInSpan(calls, now);
            }
            isComplete = count <= MAX_CALLS / 2;
        }
    }

    /**
     * Scans the calls in the set, and ends those that are due.
     *
     * @param each says how much time a call has left, and ends the call if no time is left
     * @return nanoseconds from {@code nowNanos} until the next call is due; {@link #NEVER} if there is no call. Calls
     *     that were left out of the set count too, see {@link #isAnyLater}. If the first of them is the next call, but
     *     has ended meanwhile, the result is too small
     */
    long scan(long nowNanos, Calls each) {
        isScanning = true;
        long next;
        try {
            next = keepDueInSpan(each, nowNanos);
        } finally {
            isScanning = false;
        }
        return isAnyLater ? Math.min(next, Math.max(1, laterNanos - nowNanos)) : next;
    }

    /**
     * Keeps in the set only the calls that have not ended and are due before {@link #untilNanos}. Calls that are added
     * while this method runs are scanned too.
     *
     * @return nanoseconds from {@code nowNanos} until the first call in the set is due; {@link #NEVER} if the set is
     *     empty
     */
    private long keepDueInSpan(Calls each, long nowNanos) {
        long next = NEVER;
        int kept = 0;
        for (int i = 0; i < count; i++) {
            int id = ids[i];
            long left = each.left(id, nowNanos);
            if (left >= NEVER) {
                continue;
            }
            if (nowNanos + left - untilNanos < 0) {
                next = Math.min(next, left);
                ids[kept++] = id;
            } else {
                addLater(nowNanos + left);
            }
        }
        count = kept;
        return next;
    }
}
