package dev.rpcx;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Messages that wait for their connection's socket, and whose turn it is to leave next: each brings one frame, and goes
 * to the end if it has more. It belongs to the event loop.
 *
 * <p>A message in parts that has begun takes room at its receiver, which wants it to go on at some rate and refuses it
 * otherwise; where many begin at once over a slow way each is too slow. So of messages of one size one has begun, and
 * the others wait in the order in which they came. Sizes count as one up to four times the smallest: a message waits
 * only for those that take not much longer than itself, and of messages up to 4 MiB at most four have begun. A message
 * of one frame waits for nobody's end.
 */
final class Turns {
    /** Up to 2 to the power of this a message in parts is of the first size, up to four times that of the second. */
    private static final int FIRST_SIZE_BITS = 16;

    /** The size of a message of one frame. */
    private static final byte WHOLE = 0;

    /** Queues that have held more are not kept by a connection at rest. */
    private static final int MOST_KEPT = 64;

    /**
     * Each has its turn. Of those in parts there is one of a size. A set in order: a peer that stands still ends many
     * calls at once, and each takes its own out from somewhere within.
     */
    private Set<Outbound> inTurn = new LinkedHashSet<>();

    /**
     * Messages in parts that may not begin yet, and what has to follow them; where there are any, there are others in
     * turn.
     */
    private Set<Outbound> waiting = new LinkedHashSet<>();

    /** A bit for each size of which a message in parts has its turns. */
    private int taken;

    /** Messages that came as one frame, with the one that {@link #next} has brought. */
    private int wholes;

    /** Messages of one frame that follow one that may not begin yet. */
    private int following;

    /** What has not left of all that is here: the sum of {@link Outbound#waitingBytes}. */
    private long bytes;

    /** Most messages that were here at once since the queues were made, roughly. */
    private int most;

    /** Whether nothing has a turn, and so nothing waits for one, but for what {@link #next} has brought. */
    boolean isEmpty() {
        return inTurn.isEmpty();
    }

    /** Whether there are no others than what {@link #next} has brought. */
    boolean isLast() {
        return inTurn.isEmpty() && waiting.isEmpty();
    }

    /** How many bytes of messages wait here, but for what {@link #next} has brought. */
    long bytes() {
        return bytes;
    }

    /** Whether a message of one frame waits, which another one is not to overtake. */
    boolean hasWhole() {
        return wholes > 0;
    }

    /**
     * A message that has not begun.
     *
     * @param isAhead it follows one of its id, if that is of one frame and the other waits for its turns
     */
    void add(Outbound message, boolean isAhead) {
        int length = message.body.readableBytes();
        count(message);
        most = Math.max(most, inTurn.size() + waiting.size());
        message.size = length <= Wire.MAX_PAYLOAD_BYTES ? WHOLE : size(length);
        if (message.size == WHOLE) {
            wholes++;
        }
        if (message.size != WHOLE) {
            if (isTaken(message.size)) {
                waiting.add(message);
            } else {
                begin(message);
            }
        } else if (isAhead && follows(message.id)) {
            following++;
            waiting.add(message);
        } else {
            begin(message);
        }
    }

    /** 1 for the first size. */
    private static byte size(int bytes) {
        int bits = Integer.SIZE - Integer.numberOfLeadingZeros(bytes - 1);
        return (byte) (1 + Math.max(0, (bits - FIRST_SIZE_BITS + 1) / 2));
    }

    private boolean isTaken(byte size) {
        return (taken & 1 << size) != 0;
    }

    private boolean follows(int id) {
        for (Outbound message : waiting) {
            if (message.id == id) {
                return true;
            }
        }
        return false;
    }

    private void begin(Outbound message) {
        if (message.size != WHOLE) {
            taken |= 1 << message.size;
        }
        inTurn.add(message);
    }

    /** The message whose turn it is, which {@link #goesOn} behind it or has {@link #ended}; null if there is none. */
    @Nullable
    Outbound next() {
        Iterator<Outbound> all = inTurn.iterator();
        if (!all.hasNext()) {
            return null;
        }
        Outbound next = all.next();
        all.remove();
        bytes -= next.waitingBytes;
        return next;
    }

    /** What it has now counts until it leaves: its body may have another use before it is removed. */
    private void count(Outbound message) {
        message.waitingBytes = message.body.readableBytes();
        bytes += message.waitingBytes;
    }

    void goesOn(Outbound message) {
        count(message);
        inTurn.add(message);
    }

    /** The last of it has left. */
    void ended(Outbound message) {
        if (message.size == WHOLE) {
            wholes--;
            return;
        }
        taken &= ~(1 << message.size);
        for (Iterator<Outbound> all = waiting.iterator(); all.hasNext(); ) {
            Outbound next = all.next();
            if (next.size == message.size) {
                all.remove();
                begin(next);
                letFollow(next.id);
                return;
            }
        }
    }

    /** What waits for a message of this id waits no longer. */
    private void letFollow(int id) {
        if (following == 0) {
            // all that wait are not walked for each that is taken back
            return;
        }
        for (Iterator<Outbound> all = waiting.iterator(); all.hasNext(); ) {
            Outbound next = all.next();
            if (next.size == WHOLE && next.id == id) {
                all.remove();
                following--;
                begin(next);
            }
        }
    }

    /** No more of it leaves. */
    void remove(Outbound message) {
        if (inTurn.remove(message)) {
            bytes -= message.waitingBytes;
            ended(message);
        } else if (waiting.remove(message)) {
            bytes -= message.waitingBytes;
            if (message.size == WHOLE) {
                following--;
                wholes--;
            } else {
                letFollow(message.id);
            }
        }
    }

    /** Queues that have grown and hold few or nothing are given up. */
    void shrink() {
        int now = inTurn.size() + waiting.size();
        if (most <= MOST_KEPT || now > MOST_KEPT / 4) {
            return;
        }
        try {
            Set<Outbound> fewer = new LinkedHashSet<>(inTurn);
            waiting = new LinkedHashSet<>(waiting);
            inTurn = fewer;
            most = now;
        } catch (OutOfMemoryError none) {
            // they stay until the next look, if there is one, or as long as their connection
        }
    }

    void clear() {
        inTurn.clear();
        waiting.clear();
        // a handler may hold the connection for long
        shrink();
        taken = 0;
        wholes = 0;
        following = 0;
        bytes = 0;
    }
}
