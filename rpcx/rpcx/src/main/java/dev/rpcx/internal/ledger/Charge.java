package dev.rpcx.internal.ledger;

import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;

/**
 * What one owner holds of one {@link Resource}. The owner charges and releases through this object, and has to release
 * what is left when the owner ends.
 *
 * <p>Not thread-safe. A charge belongs to the same thread as its owner. A call or a connection belongs to the event
 * loop and, after the end of the loop, to the thread that holds the connection's lock. An owner that several threads
 * use guards the charge with its own lock.
 *
 * <p>Bytes of messages, of their objects, of stream items and of queues are charged to the account in steps of
 * {@link #STEP_BYTES}. The account may be charged more than the owner holds, by less than two steps, until the next
 * {@link #release()}. This makes most small charges a mere addition.
 */
public final class Charge implements Memory {
    public static final long STEP_BYTES = 4 * 1024;

    /** Number of bytes of objects after which the reading of a message pauses. To read that many takes about 1 ms. */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /** What the account has been charged: {@link #held}, or more because of the steps of {@link #STEP_BYTES}. */
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

    /**
     * Charges an amount.
     *
     * @return false if there is no room; then nothing has changed
     */
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
     * Charges bytes of a message that is being read. A message of many objects keeps a processor busy for tens of
     * milliseconds, so on a virtual thread the reading pauses after each {@code PAUSE_BYTES}.
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
     * Returns the number of bytes that a message may take without a charge. It is small, since the items of streams and
     * the arguments of classic calls are read while the call is not counted as running.
     */
    @Override
    public int freeBytes() {
        return UnchargedAllowance.IDLE_OBJECT_BYTES;
    }

    /** Releases a part of what is held. */
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

    /**
     * Sets the amount that is held.
     *
     * @return false if there is no room; then nothing has changed
     */
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

    /** Releases all that is held. A second call does nothing. */
    public void release() {
        long all = taken;
        if (all == 0) {
            // the fields already have these values; to store them again would only slow other processors down
            return;
        }
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        account.release(kind, all);
    }

    /**
     * Hands over all that is charged to another owner, who has to release it to the account.
     *
     * @return the amount to release: what was held, or more because of the steps of {@link #STEP_BYTES}
     */
    public long handOver() {
        long all = taken;
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        return all;
    }

    /**
     * Hands a part of what is held over to another owner, which has to release it to the account. Only for kinds that
     * are charged in steps of one.
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
