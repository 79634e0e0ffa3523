package dev.rpcx.internal.ledger;

import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;

/**
 * Counts how much one owner, for example a call or a connection, holds of one {@link Resource}. The owner adds and
 * releases amounts through this object, and has to release the rest when the owner ends.
 *
 * <p>Not thread-safe. A charge is used only by the thread that uses the charge's owner. A connection is used by the
 * event loop and, after the end of the event loop, by the thread that holds the connection's lock. A call is also used
 * by the threads that read its request, run its handler or write its reply, one after another. An owner that several
 * threads use guards the charge with its own lock.
 *
 * <p>Most kinds of bytes are charged to the connection's {@link Account} in steps of {@link #STEP_BYTES} (4 KiB), so
 * most small charges only add to a field. For these kinds, the account can count more than the owner holds, but by less
 * than two steps, because {@link #release(long)} keeps a single unused step. {@link #release()} releases everything.
 */
public final class Charge implements Memory {
    public static final long STEP_BYTES = 4 * 1024;

    /**
     * Memory in bytes that is charged for a message's objects between two pauses of a virtual thread that reads the
     * message. In a pause, the virtual thread lets other threads run. From one pause to the next, reading takes about
     * 1 ms.
     */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /**
     * Amount that the account has been charged. This amount is at least {@link #held}, and can be larger, because bytes
     * are charged in steps of {@link #STEP_BYTES}.
     */
    private long taken;

    /**
     * Value of {@link #held}, in bytes, at which a virtual thread that is reading a message makes its next pause for
     * other threads.
     */
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
     * @return false if the account has no room for this amount; nothing has changed in this case
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
     * Charges bytes for the objects of a message that is being read. A virtual thread lets other threads run after each
     * {@code PAUSE_BYTES}. Otherwise a message of many objects would keep a processor busy for tens of milliseconds.
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
     * Returns the number of bytes that the objects of one stream item, or of all arguments of one classic call
     * together, may take without a charge. {@link UnchargedAllowance} allows the same number for a call whose handler
     * does not count as running.
     */
    @Override
    public int freeBytes() {
        return UnchargedAllowance.MAX_IDLE_OBJECT_BYTES;
    }

    /** Releases a part of the amount that the owner holds. */
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
     * @return false if the account has no room for a larger amount; nothing has changed in this case
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

    /** Releases the whole amount that the owner holds. A second call does nothing. */
    public void release() {
        long all = taken;
        if (all == 0) {
            // no field is set here, because setting a field to the same value would slow other processors down
            return;
        }
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        account.release(kind, all);
    }

    /**
     * Makes another owner responsible for the whole amount that the account has been charged. The other owner has to
     * release this amount to the account.
     *
     * @return the amount that the other owner has to release. This can be more than the amount held, because bytes are
     *     charged in steps of {@link #STEP_BYTES}
     */
    public long handOver() {
        long all = taken;
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        return all;
    }

    /**
     * Makes another owner responsible for a part of the amount held. The other owner has to release this part to the
     * connection's {@link Account}. Works only for kinds of resources that are not charged in steps of
     * {@link #STEP_BYTES}.
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
