package dev.rpcx;

import dev.rpcx.codec.Memory;

/**
 * What one owner holds of one {@link Resource}. What has been charged is given back by the same object, all of it or a part; so nothing can
 * be given back twice, and nothing is lost as long as the owner releases it when it ends.
 *
 * <p>Not thread-safe: it belongs to whoever owns its owner at the time, the event loop for a call or a connection, after the loop's end
 * whoever holds the connection's lock. An owner with several threads guards it with its own lock.
 *
 * <p>The account is asked in steps of {@link #STEP_BYTES} where bytes are counted, and what was taken is kept until the next
 * {@link #release()}: many small amounts cost an addition each.
 */
final class Charge implements Memory {
    static final long STEP_BYTES = 4 * 1024;

    /** What a message is read into between two pauses: about a millisecond's work. */
    private static final long PAUSE_BYTES = 512 * 1024;

    private final Account account;
    private final Resource kind;
    private final long step;
    private long held;

    /** What the account has been charged: at least {@link #held}. */
    private long taken;

    /** How much is {@link #held} when a message that is being read pauses next. */
    private long pauseAt = PAUSE_BYTES;

    Charge(Account account, Resource kind) {
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
    boolean add(long amount) {
        long wanted = held + amount;
        if (wanted > taken) {
            long more = (wanted - taken + step - 1) / step * step;
            if (!account.take(kind, more)) {
                return false;
            }
            taken += more;
        }
        held = wanted;
        return true;
    }

    /**
     * Adds for a message that is being read. One that becomes many objects keeps its processor busy for tens of
     * milliseconds, so it pauses now and then for what is quicker; most messages never do.
     */
    @Override
    public boolean take(long bytes) {
        if (held >= pauseAt) {
            pauseAt = held + PAUSE_BYTES;
            ThreadTools.letOthersRun();
        }
        return add(bytes);
    }

    /** Nobody counts the readers of items, nor the arguments of classic calls. */
    @Override
    public int unasked() {
        return Uncharged.IDLE_OBJECT_BYTES;
    }

    /** Gives a part back. */
    void release(long amount) {
        if (amount > held) {
            throw new IllegalArgumentException(amount + " " + kind + " (expected: at most " + held + ")");
        }
        held -= amount;
        long spare = (taken - held) / step * step;
        if (spare > step || step == 1) {
            taken -= spare;
            account.give(kind, spare);
        }
    }

    /** Changes what is held to this much. @return false if that would be too much; nothing is changed then */
    boolean set(long amount) {
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
    void release() {
        long all = taken;
        if (all == 0) {
            // nothing is held either, and to write what is there already would cost other processors their copy of it
            return;
        }
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        account.give(kind, all);
    }

    /**
     * All that is charged goes to another owner, who gives it back to the account.
     *
     * @return how much that is: at least what is held
     */
    long handOver() {
        long all = taken;
        held = 0;
        taken = 0;
        pauseAt = PAUSE_BYTES;
        return all;
    }

    /** A part of what is charged in steps of one goes to another owner, as by {@link #handOver()}. */
    void handOver(long amount) {
        if (step != 1 || amount > held) {
            throw new IllegalArgumentException(
                    amount + " " + kind + " (expected: at most " + held + ", in steps of 1)");
        }
        held -= amount;
        taken -= amount;
    }

    long held() {
        return held;
    }
}
