package dev.rpcx.internal.ledger;

import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;

/**
 * Counts what one owner, for example a call or a connection, holds of one {@link Resource}. The owner adds and releases
 * amounts through this object. When the owner ends, it has to release the rest.
 *
 * <p>Not thread-safe. A charge belongs to the same thread as its owner. A call or a connection belongs to the event
 * loop and, after the end of the loop, to the thread that holds the connection's lock. An owner that several threads
 * use guards the charge with its own lock.
 *
 * <p>For most kinds of bytes, the {@link Account} of the connection is charged in steps of {@link #STEP_BYTES} (4 KiB).
 * So most small charges are a mere addition. Until the next {@link #release()}, the account may count more than the
 * owner holds, by less than two steps.
 */
public final class Charge implements Memory {
    public static final long STEP_BYTES = 4 * 1024;

    /**
     * After this many bytes of a message's objects, a virtual thread that reads the message lets other threads run.
     * Reading that many takes about 1 ms.
     */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /**
     * Amount that the account has been charged. It is {@link #held}, or more, since bytes are charged in steps of
     * {@link #STEP_BYTES}.
     */
    private long taken;

    /** Value of {@link #held} at which a virtual thread that reads a message will next let other threads run. */
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
     * Charges the account for a further amount that the owner holds.
     *
     * @return false if the account has no room for it; then nothing has changed
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
     * Charges bytes for the objects of a message that is being read. On a virtual thread, lets other threads run after
     * each {@code PAUSE_BYTES}: reading a message of many objects would keep a processor busy for tens of milliseconds.
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
     * Returns the number of bytes that the objects of one message may take without a charge. It is small, since some
     * messages are read before their call counts as running: items of streams, and arguments of classic calls.
     */
    @Override
    public int freeBytes() {
        return UnchargedAllowance.IDLE_OBJECT_BYTES;
    }

    /** Releases a part of what the owner holds. */
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
     * Sets the amount that the owner holds, and charges or releases the difference.
     *
     * @return false if the account has no room for a larger amount; then nothing has changed
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

    /** Releases all that the owner holds. A second call does nothing. */
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
     * Hands everything that the account has been charged over to another owner, who has to release it to the account.
     *
     * @return the amount that the other owner has to release: what was held, or more because of the steps of
     *     {@link #STEP_BYTES}
     */
    public long handOver() {
        long all = taken;
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        return all;
    }

    /**
     * Hands a part of what is held over to another owner, who has to release it to the account. Only for kinds that are
     * charged in steps of 1.
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
