package dev.rpcx.internal.server;

import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Calls of a connection that will soon reach one of their time limits. Between two full scans of all calls, the
 * connection scans only this set. Otherwise a client with many calls could cause a full scan each time that one of them
 * reaches its limit.
 *
 * <p>A full scan fills the set with the calls that are due within a span of time, and later calls are added. If there
 * are more than {@value #MAX} such calls, the span is halved until at most half as many are left. When the span is
 * over, the next scan is a full one.
 *
 * <p>Event loop only.
 */
final class DueSoon {
    /** Time that {@link Calls#left} returns for a call that has ended. */
    static final long NEVER = Long.MAX_VALUE / 2;

    static final long SPAN_NANOS = 1_000_000_000;
    static final int MAX = 128;
    private static final int FIRST = 16;
    private static final int[] NONE = {};

    /** Returns the time that remains for a call. An implementation may also end a call that is due. */
    interface Calls {
        /**
         * Returns the time from {@code nowNanos} until a call is due.
         *
         * @return nanoseconds; 0 or less for a call that is due and has not been ended; {@link #NEVER} if the call has
         *     ended
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
     * Whether calls were left out because they are not due before {@link #untilNanos}. The first of them is due at
     * {@link #laterNanos}.
     */
    private boolean isAnyLater;

    private long laterNanos;
    private boolean isScanning;

    /**
     * Creates an empty set. The first scan has to be a full one.
     *
     * @param calls returns the time that remains for a call, and ends no call
     */
    DueSoon(Calls calls, LongSupplier clock) {
        this.calls = calls;
        this.clock = clock;
    }

    /** Returns whether a scan of the set finds all calls that are due now. */
    boolean isComplete(long nowNanos) {
        return isComplete && untilNanos - nowNanos > 0;
    }

    /**
     * Begins a full scan. After this call, the caller scans all calls, and has to {@link #add add} each call that has
     * not ended.
     */
    void begin(long nowNanos) {
        count = 0;
        isAnyLater = false;
        untilNanos = nowNanos + SPAN_NANOS;
        isComplete = true;
    }

    /** Empties the set. Until the next call of {@code begin}, every scan has to be a full one. */
    void forget() {
        isComplete = false;
        count = 0;
    }

    /** Adds a call that is due at {@code dueNanos}. A call may be added again with an earlier time. */
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
        // The set is incomplete until there is room. If no room can be made, the next scan is a full one.
        isComplete = false;
        if (ids.length < MAX) {
            try {
                ids = Arrays.copyOf(ids, Math.max(FIRST, 2 * ids.length));
                isComplete = true;
            } catch (OutOfMemoryError none) {
                // No call is lost: the set only makes scans shorter.
            }
        } else if (!isScanning) {
            long now = clock.getAsLong();
            keepDueInSpan(calls, now);
            while (count > MAX / 2 && untilNanos - now > 1) {
                untilNanos = now + (untilNanos - now) / 2;
                keepDueInSpan(calls, now);
            }
            isComplete = count <= MAX / 2;
        }
    }

    /**
     * Scans the set, and ends the calls that are due.
     *
     * @param each ends a call that is due
     * @return nanoseconds from {@code nowNanos} until the next call is due
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
     * Removes from the set the calls that have ended and those that are due after the end of the span. Calls that are
     * added while this method runs are scanned too.
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
