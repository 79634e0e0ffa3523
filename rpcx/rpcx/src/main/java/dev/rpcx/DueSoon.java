package dev.rpcx;

import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Which calls of a connection are due soon. A look that passes all calls finds them, and those that come until then are
 * added: until the next look at all, others pass these alone. A client chooses how many calls it has and how often one
 * of them is due; so it cannot have all of them passed for each that it lets end.
 *
 * <p>Of how soon that is, there is room for a few. Where more come it is halved, so that those which are left are worth
 * a look at all when it is over.
 *
 * <p>Event loop only.
 */
final class DueSoon {
    /** As {@link Calls#left}: it has ended. */
    static final long NEVER = Long.MAX_VALUE / 2;

    static final long SPAN_NANOS = 1_000_000_000;
    static final int MOST = 128;
    private static final int FIRST = 16;
    private static final int[] NONE = {};

    /** Asks for the time that a call has left, of some now, or ends it. */
    interface Calls {
        /** @return nanoseconds above 0, or {@link #NEVER} */
        long left(int id, long nowNanos);
    }

    private final Calls calls;
    private final LongSupplier clock;
    private int[] ids = NONE;
    private int count;

    /** All calls that are due before {@link #untilNanos} are here. */
    private boolean isKept;

    private long untilNanos;

    /** Some that are not here are due, the first of them at {@link #laterNanos}. */
    private boolean isAnyLater;

    private long laterNanos;
    private boolean isLooking;

    /** @param calls says what time a call has left, and ends none */
    DueSoon(Calls calls, LongSupplier clock) {
        this.calls = calls;
        this.clock = clock;
    }

    /** Whether a look at these finds all that are due now. */
    boolean isKept(long nowNanos) {
        return isKept && untilNanos - nowNanos > 0;
    }

    /** All calls are looked at now, and each that goes on is to be {@link #add added}. */
    void begin(long nowNanos) {
        count = 0;
        isAnyLater = false;
        untilNanos = nowNanos + SPAN_NANOS;
        isKept = true;
    }

    /** All calls are looked at each time. */
    void forget() {
        isKept = false;
        count = 0;
    }

    /** A call is due at this time, which may be earlier than what was said of it before. */
    void add(int id, long dueNanos) {
        if (!isKept) {
            return;
        }
        if (dueNanos - untilNanos < 0 && count == ids.length) {
            makeRoom();
        }
        if (isKept && dueNanos - untilNanos < 0) {
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
        // until there is some: otherwise the next look passes all
        isKept = false;
        if (ids.length < MOST) {
            try {
                ids = Arrays.copyOf(ids, Math.max(FIRST, 2 * ids.length));
                isKept = true;
            } catch (OutOfMemoryError none) {
                // it is a shortcut, and no call depends on it
            }
        } else if (!isLooking) {
            long now = clock.getAsLong();
            keepThose(calls, now);
            while (count > MOST / 2 && untilNanos - now > 1) {
                untilNanos = now + (untilNanos - now) / 2;
                keepThose(calls, now);
            }
            isKept = count <= MOST / 2;
        }
    }

    /**
     * Ends those that are due.
     *
     * @param each ends a call that is due
     * @return when the next call is due, from now
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
     * Keeps those that go on and are due before the end. What comes meanwhile is one of them.
     *
     * @return when the first is due, from now
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
