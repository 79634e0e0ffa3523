package dev.rpcx.internal.ledger;

import dev.rpcx.codec.Memory;
import dev.rpcx.internal.ThreadTools;

/**
 * What one owner holds of one {@link Resource}. What has been charged through this object is released through it too,
 * completely or in parts. So nothing can be released twice, and nothing stays charged by mistake as long as the owner
 * releases the charge when the owner ends.
 *
 * <p>Not thread-safe. At any time, a charge belongs to the same thread as its owner. A call or a connection belongs to
 * the event loop and, after the end of the loop, to the thread that holds the connection's lock. An owner that several
 * threads use guards its charge with its own lock.
 *
 * <p>For bytes of messages, of their objects, of stream items and of queues, the account is charged in steps of
 * {@link #STEP_BYTES}. Until the next {@link #release()}, what is charged may exceed what is held, by less than two
 * steps. So in most cases, charging a small amount costs no more than an addition.
 */
public final class Charge implements Memory {
    public static final long STEP_BYTES = 4 * 1024;

    /**
     * While a message is read, the reading pauses each time that the message's objects have grown by this number of
     * bytes. To read that many takes about a millisecond.
     */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /**
     * What the account has been charged. It is at least {@link #held}. It may be more, since the account is charged in
     * steps (see {@link #STEP_BYTES}).
     */
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
     * Adds to what is held.
     *
     * @return false if there is no room for that much; then nothing has changed
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
     * Adds to the charge for a message that is being read. A message that becomes many objects keeps its processor busy
     * for tens of milliseconds. So on a virtual thread the reading pauses now and then, to let quicker work run. Most
     * messages are read without a pause.
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
     * Returns the number of bytes that a message may take without a charge. It is the number that a call may hold
     * without a charge while the call is not counted as running. The same number applies here, because the items of
     * streams and the arguments of classic calls are read by code that is not counted as running.
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
     * @return false if there is no room for that much; then nothing has changed
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
            // if nothing is charged, nothing is held either. The fields then have these values already. To store them
            // again would only take the cache line away from other processors
            return;
        }
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        account.release(kind, all);
    }

    /**
     * Hands all that is charged over to another owner, which has to release it to the account. This charge then holds
     * nothing.
     *
     * @return the amount that the account was charged and that the new owner has to release. It is what was held, or
     *     more, since the account is charged in steps (see {@link #STEP_BYTES})
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
