package dev.rpcx.internal.server;

import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Set of the calls of a connection that are due soon. A full scan of all the connection's calls fills the set, and
 * calls that come later are added. Until the next full scan, the connection scans the set alone. A client chooses how
 * many calls it has and how often one of them is due; with the set it cannot have all its calls scanned for each call
 * that it lets end.
 *
 * <p>The set covers a span of time, and has room for a few calls. If more come, the span is halved, so that the calls
 * which are left out are worth a full scan when the span is over.
 *
 * <p>Event loop only.
 */
final class DueSoon {
    /** Result of {@link Calls#left} for a call that has ended. */
    static final long NEVER = Long.MAX_VALUE / 2;

    static final long SPAN_NANOS = 1_000_000_000;
    static final int MAX = 128;
    private static final int FIRST = 16;
    private static final int[] NONE = {};

    /** Gives the time that a call has left as of {@code nowNanos}, and may end the call if it is due. */
    interface Calls {
        /** @return nanoseconds above 0, or {@link #NEVER} */
        long left(int id, long nowNanos);
    }

    private final Calls calls;
    private final LongSupplier clock;
    private int[] ids = NONE;
    private int count;

    /** Whether all calls that are due before {@link #untilNanos} are in the set. */
    private boolean isComplete;

    private long untilNanos;

    /** Whether calls that are not in the set are due later, the first of them at {@link #laterNanos}. */
    private boolean isAnyLater;

    private long laterNanos;
    private boolean isLooking;

    /** @param calls gives the time that a call has left, and ends no call */
    DueSoon(Calls calls, LongSupplier clock) {
        this.calls = calls;
        this.clock = clock;
    }

    /** Whether a scan of the set finds all calls that are due now. */
    boolean isComplete(long nowNanos) {
        return isComplete && untilNanos - nowNanos > 0;
    }

    /** Begins a full scan: the caller scans all calls now, and has to {@link #add add} each call that goes on. */
    void begin(long nowNanos) {
        count = 0;
        isAnyLater = false;
        untilNanos = nowNanos + SPAN_NANOS;
        isComplete = true;
    }

    /** Gives up the set: every scan is a full one, until the next {@code begin}. */
    void forget() {
        isComplete = false;
        count = 0;
    }

    /** Adds a call that is due at this time, which may be earlier than a time given before for the same call. */
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
        // The set is incomplete until there is room. If there is none, the next scan is a full one.
        isComplete = false;
        if (ids.length < MAX) {
            try {
                ids = Arrays.copyOf(ids, Math.max(FIRST, 2 * ids.length));
                isComplete = true;
            } catch (OutOfMemoryError none) {
                // The set is a shortcut, and no call depends on it.
            }
        } else if (!isLooking) {
            long now = clock.getAsLong();
            keepThose(calls, now);
            while (count > MAX / 2 && untilNanos - now > 1) {
                untilNanos = now + (untilNanos - now) / 2;
                keepThose(calls, now);
            }
            isComplete = count <= MAX / 2;
        }
    }

    /**
     * Scans the set, and ends the calls that are due.
     *
     * @param each ends a call that is due
     * @return nanoseconds from now until the next call is due
     */
    long look(long nowNanos, Calls each) {
        isLooking = true;
        long next;
        try {
            next = keepThose(each, nowNanos);
        } finally {
            isLooking = false;
        }
        return isAnyLater ? Math.min(next, Math.max(1, laterNanos - nowNanos)) : next;
    }

    /**
     * Keeps the calls that go on and are due before the end of the span. Calls that are added meanwhile are scanned
     * too.
     *
     * @return nanoseconds from now until the first of the kept calls is due
     */
    private long keepThose(Calls each, long nowNanos) {
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
