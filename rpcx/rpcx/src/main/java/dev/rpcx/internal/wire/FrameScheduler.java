package dev.rpcx.internal.wire;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Messages that wait for the socket of their connection, and the order in which they leave. The messages in rotation
 * leave one frame each; a message that has more goes to the end. Event loop only.
 *
 * <p>A message in parts that has begun takes room at its receiver, which wants it to go on at some rate and refuses it
 * otherwise. If many began at once over a slow network, each would be too slow. So of the messages of one size class
 * only one has begun, and the others wait in the order in which they came. A size class reaches up to four times its
 * smallest size: a message waits only for messages that take not much longer than itself, and of messages up to 4 MiB
 * at most four have begun. A message of one frame waits only if it has to follow a message that may not begin yet.
 */
final class FrameScheduler {
    /**
     * Binary logarithm of the largest size in the first size class of messages in parts. The second class reaches up to
     * four times that size.
     */
    private static final int FIRST_SIZE_BITS = 16;

    /** Size class of a message of one frame. */
    private static final byte WHOLE = 0;

    /** Queues that have held more messages than this are not kept by a connection at rest. */
    private static final int MAX_KEPT = 64;

    /**
     * Messages in rotation; of those in parts there is at most one of each size class. It is a set in insertion order:
     * when a peer stands still, many calls end at once, and each removes its message from somewhere within.
     */
    private Set<Outbound> rotation = new LinkedHashSet<>();

    /**
     * Messages in parts that may not begin yet, and messages that have to follow them. If there are any, there are
     * others in rotation.
     */
    private Set<Outbound> waiting = new LinkedHashSet<>();

    /** A bit for each size class of which a message in parts is in rotation. */
    private int taken;

    /** Number of messages of one frame, including one that {@link #next} has returned. */
    private int wholes;

    /** Number of messages of one frame that have to follow a message that may not begin yet. */
    private int following;

    /** Bytes of the messages here that have not left: the sum of {@link Outbound#waitingBytes}. */
    private long bytes;

    /** Largest number of messages that were here at once since the queues were made, roughly. */
    private int most;

    /**
     * Whether no message is in rotation. Then none waits to begin either, unless behind the message that {@link #next}
     * has returned.
     */
    boolean isEmpty() {
        return rotation.isEmpty();
    }

    /** Whether no message is here except the one that {@link #next} has returned. */
    boolean isLast() {
        return rotation.isEmpty() && waiting.isEmpty();
    }

    /** Number of bytes that wait here, without those of the message that {@link #next} has returned. */
    long bytes() {
        return bytes;
    }

    /** Whether a message of one frame waits, which another message must not overtake. */
    boolean hasWhole() {
        return wholes > 0;
    }

    /**
     * Adds a message that has not begun.
     *
     * @param isAhead whether the message would overtake another message of its id; if it has one frame, it follows that
     *     message while that waits to begin
     */
    void add(Outbound message, boolean isAhead) {
        int length = message.body.readableBytes();
        count(message);
        most = Math.max(most, rotation.size() + waiting.size());
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

    /** Size class of a message in parts; 1 for the first class. */
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
        rotation.add(message);
    }

    /**
     * Takes the next message in rotation, for which the caller then calls {@link #goesOn} or {@link #ended}; null if
     * there is none.
     */
    @Nullable
    Outbound next() {
        Iterator<Outbound> all = rotation.iterator();
        if (!all.hasNext()) {
            return null;
        }
        Outbound next = all.next();
        all.remove();
        bytes -= next.waitingBytes;
        return next;
    }

    /**
     * Counts the bytes that the message has now. The message keeps that number, since its body may have another use
     * before the message is removed.
     */
    private void count(Outbound message) {
        message.waitingBytes = message.body.readableBytes();
        bytes += message.waitingBytes;
    }

    void goesOn(Outbound message) {
        count(message);
        rotation.add(message);
    }

    /** Called when the last frame of a message has left, or when no more of it leaves. */
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

    /** Puts the messages in rotation that wait for a message of this id. */
    private void letFollow(int id) {
        if (following == 0) {
            // saves a walk over all waiting messages for each message that is taken back
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

    /** Removes a message of which no more leaves. */
    void remove(Outbound message) {
        if (rotation.remove(message)) {
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

    /** Replaces queues that have grown and hold few messages or none. */
    void shrink() {
        int now = rotation.size() + waiting.size();
        if (most <= MAX_KEPT || now > MAX_KEPT / 4) {
            return;
        }
        try {
            Set<Outbound> fewer = new LinkedHashSet<>(rotation);
            waiting = new LinkedHashSet<>(waiting);
            rotation = fewer;
            most = now;
        } catch (OutOfMemoryError none) {
            // the queues stay until the next call of this method, if there is one, or as long as their connection
        }
    }

    void clear() {
        rotation.clear();
        waiting.clear();
        // a handler may hold the connection for long, and with it the queues
        shrink();
        taken = 0;
        wholes = 0;
        following = 0;
        bytes = 0;
    }
}
