package dev.rpcx.internal.ledger;

import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;

/**
 * What one owner holds of one {@link Resource}. What has been charged is given back by the same object, all of it or a
 * part; so nothing can be given back twice, and nothing is lost as long as the owner releases the charge when it ends.
 *
 * <p>Not thread-safe. A charge belongs to whoever owns its owner at the time: for a call or a connection that is the
 * event loop, and after the loop's end whoever holds the connection's lock. An owner with several threads guards its
 * charge with its own lock.
 *
 * <p>For bytes of messages, of their objects, of items and of queues, the account is asked in steps of
 * {@link #STEP_BYTES}, and less than two steps above what is held are kept until the next {@link #release()}: so each
 * of many small amounts costs an addition.
 */
public final class Charge implements Memory {
    public static final long STEP_BYTES = 4 * 1024;

    /** Bytes of objects that a message is read into between two pauses: about a millisecond's work. */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /** What the account has been charged: at least {@link #held}. */
    private long taken;

    /** Value of {@link #held} at which the reading of a message pauses next. */
    private long pauseAt = PAUSE_BYTES;

    public Charge(Account account, Resource kind) {
        this.account = account;
        this.kind = kind;
        this.step = switch (kind) {
            case REQUEST_BYTES,
                    OBJECT_BYTES,
                    REPLY_BYTES,
                    UNREAD_REPLY_BYTES,
                    QUEUE_BYTES,
                    ITEM_BYTES_IN,
                    ITEM_BYTES_OUT -> STEP_BYTES;
            case KEPT_BYTES, TABLE_BYTES, FRAME_BYTES, CONNECTIONS, CALLS, HANDLERS, ORPHANS, STREAMS, TIMERS -> 1;
        };
    }

    /** @return false if that would be too much; nothing is changed then */
    public boolean add(long amount) {
        long wanted = held + amount;
        if (wanted > taken) {
            long more = (wanted - taken + step - 1) / step * step;
            if (!account.tryCharge(kind, more)) {
                return false;
            }
            taken += more;
        }
        held = wanted;
        return true;
    }

    /**
     * Adds to the charge for a message that is being read. A message that becomes many objects keeps its processor busy
     * for tens of milliseconds, so its reading pauses now and then to let quicker work run. Most messages are read
     * without a pause.
     */
    @Override
    public boolean take(long bytes) {
        if (held >= pauseAt) {
            pauseAt = held + PAUSE_BYTES;
            ThreadTools.letOthersRun();
        }
        return add(bytes);
    }

    /**
     * Returns the bytes that a message may take before it asks. They are those of a call that is counted nowhere, since
     * nobody counts the readers of items, nor the arguments of classic calls.
     */
    @Override
    public int unasked() {
        return UnchargedAllowance.IDLE_OBJECT_BYTES;
    }

    /** Gives a part back. */
    public void release(long amount) {
        if (amount > held) {
            throw new IllegalArgumentException(amount + " " + kind + " (expected: at most " + held + ")");
        }
        held -= amount;
        long spare = (taken - held) / step * step;
        if (spare > step || step == 1) {
            taken -= spare;
            account.release(kind, spare);
        }
    }

    /** Sets the amount that is held. @return false if that would be too much; nothing is changed then */
    public boolean set(long amount) {
        if (amount == 0) {
            release();
        } else if (amount < held) {
            release(held - amount);
        } else {
            return add(amount - held);
        }
        return true;
    }

    /** Gives everything back. A second time does nothing. */
    public void release() {
        long all = taken;
        if (all == 0) {
            // nothing is held either, and storing the values that are there already would take the cache line from
            // other processors
            return;
        }
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        account.release(kind, all);
    }

    /**
     * Hands all that is charged to another owner, who gives it back to the account.
     *
     * @return the amount, which is at least what is held
     */
    public long handOver() {
        long all = taken;
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        return all;
    }

    /**
     * Hands a part to another owner, as {@link #handOver()} does with all. Only where the account is charged in steps
     * of one.
     */
    public void handOver(long amount) {
        if (step != 1 || amount > held) {
            throw new IllegalArgumentException(
                    amount + " " + kind + " (expected: at most " + held + ", in steps of 1)");
        }
        held -= amount;
        taken -= amount;
    }

    public long held() {
        return held;
    }
}
