package dev.rpcx.internal.wire;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Holds the messages that wait for the socket of their connection, and decides in which order their frames are sent.
 * The messages that may send frames form a rotation. The first message in rotation sends one frame; if it has more
 * frames, it then goes to the end of the rotation. A message begins when it enters the rotation for the first time.
 * Event loop only.
 *
 * <p>A message in parts, which has several frames, takes memory at its receiver as soon as its first frame arrives, and
 * the receiver refuses a message whose frames come too slowly. If many such messages began at the same time over a slow
 * network, each of them would be too slow. So each message in parts belongs to a size class, and at any time only one
 * message of each size class has begun and has not ended. The others of the class wait in the order in which they came.
 * The largest size of a class is four times its smallest size. So a message waits only for messages that do not take
 * much longer than itself. Of all messages in parts of up to 4 MiB, at any time at most four have begun and have not
 * ended. A message of one frame waits only if it has to follow a message that may not begin yet.
 */
final class FrameScheduler {
    /**
     * The first size class has the messages in parts of up to 64 KiB. This is the binary logarithm of that size in
     * bytes. The largest size of each further class is four times that of the class before.
     */
    private static final int FIRST_SIZE_BITS = 16;

    /** Size class of a message that has one frame. */
    private static final byte WHOLE = 0;

    /**
     * If {@code rotation} and {@code waiting} have held more messages than this together, they are too large to be
     * kept: {@code shrink} replaces them by smaller ones when they hold few messages or none.
     */
    private static final int MAX_KEPT = 64;

    /**
     * Messages in rotation. Among them is at most one message in parts of each size class. This is a set in insertion
     * order, from which any message can be removed quickly: when a peer stands still, many calls end at the same time,
     * and each removes its message from somewhere in the middle.
     */
    private Set<Outbound> rotation = new LinkedHashSet<>();

    /**
     * Messages in parts that may not begin yet, and messages of one frame that have to follow one of these. While there
     * are any, the rotation is not empty, unless {@link #next} has just returned its only message.
     */
    private Set<Outbound> waiting = new LinkedHashSet<>();

    /**
     * One bit for each size class. The bit is set while a message in parts of this class is in rotation, or has been
     * returned by {@link #next} and has not ended.
     */
    private int taken;

    /** Number of messages of one frame in both queues, including a message that {@link #next} has returned. */
    private int wholes;

    /** Number of messages of one frame in {@code waiting}, which have to follow a message that may not begin yet. */
    private int following;

    /**
     * Number of bytes of the messages in both queues that are still to be sent: the sum of their
     * {@link Outbound#waitingBytes}.
     */
    private long bytes;

    /** Approximate largest number of messages that both queues have held at the same time since they were created. */
    private int peak;

    /**
     * Whether no message is in rotation. Then no message waits to begin either, unless it waits for the message that
     * {@link #next} has returned.
     */
    boolean isEmpty() {
        return rotation.isEmpty();
    }

    /**
     * Whether both queues are empty. Only the message that {@link #next} has returned may then have more frames to
     * send.
     */
    boolean isLast() {
        return rotation.isEmpty() && waiting.isEmpty();
    }

    /**
     * Returns the number of bytes that wait to be sent. Those of the message that {@link #next} has returned are not
     * counted.
     */
    long bytes() {
        return bytes;
    }

    /** Whether a message of one frame waits here, which a later request or stream item must not overtake. */
    boolean hasWhole() {
        return wholes > 0;
    }

    /**
     * Adds a message that has not begun.
     *
     * @param isAhead whether the message would overtake an earlier message of the same id, which the peer has to
     *     receive first. If so, and if the added message has one frame, it does not begin before the earlier message
     *     has begun
     */
    void add(Outbound message, boolean isAhead) {
        int length = message.body.readableBytes();
        count(message);
        peak = Math.max(peak, rotation.size() + waiting.size());
        message.sizeClass = length <= Wire.MAX_PAYLOAD_BYTES ? WHOLE : size(length);
        if (message.sizeClass == WHOLE) {
            wholes++;
        }
        if (message.sizeClass != WHOLE) {
            if (isTaken(message.sizeClass)) {
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

    /**
     * Returns the size class of a message in parts; 1 for the first class. {@code bytes} is the size of the message.
     */
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
        if (message.sizeClass != WHOLE) {
            taken |= 1 << message.sizeClass;
        }
        rotation.add(message);
    }

    /**
     * Removes the next message from the rotation, and returns it; null if there is none. When the caller has sent a
     * frame of it, the caller calls {@link #goesOn} if the message has more frames, and {@link #ended} if it has not.
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
     * Counts the bytes of the message that are still to be sent, and stores their number in the message. When the
     * message is removed later, the number cannot be taken from its body: the body may already be in use for something
     * else.
     */
    private void count(Outbound message) {
        message.waitingBytes = message.body.readableBytes();
        bytes += message.waitingBytes;
    }

    void goesOn(Outbound message) {
        count(message);
        rotation.add(message);
    }

    /**
     * Called when the last frame of a message has been sent, or when no more of the message is to be sent. The next
     * message of its size class may then begin.
     */
    void ended(Outbound message) {
        if (message.sizeClass == WHOLE) {
            wholes--;
            return;
        }
        taken &= ~(1 << message.sizeClass);
        for (Iterator<Outbound> all = waiting.iterator(); all.hasNext(); ) {
            Outbound next = all.next();
            if (next.sizeClass == message.sizeClass) {
                all.remove();
                begin(next);
                letFollow(next.id);
                return;
            }
        }
    }

    /** Moves the messages of one frame that wait for the message with this id into the rotation. */
    private void letFollow(int id) {
        if (following == 0) {
            // this check avoids a walk over all waiting messages for each message that is removed
            return;
        }
        for (Iterator<Outbound> all = waiting.iterator(); all.hasNext(); ) {
            Outbound next = all.next();
            if (next.sizeClass == WHOLE && next.id == id) {
                all.remove();
                following--;
                begin(next);
            }
        }
    }

    /** Removes a message of which no more is to be sent. Does nothing if the message is not here. */
    void remove(Outbound message) {
        if (rotation.remove(message)) {
            bytes -= message.waitingBytes;
            ended(message);
        } else if (waiting.remove(message)) {
            bytes -= message.waitingBytes;
            if (message.sizeClass == WHOLE) {
                following--;
                wholes--;
            } else {
                letFollow(message.id);
            }
        }
    }

    /** Replaces the queues by smaller ones, if they have held many messages and now hold few or none. */
    void shrink() {
        int now = rotation.size() + waiting.size();
        if (peak <= MAX_KEPT || now > MAX_KEPT / 4) {
            return;
        }
        try {
            Set<Outbound> fewer = new LinkedHashSet<>(rotation);
            waiting = new LinkedHashSet<>(waiting);
            rotation = fewer;
            peak = now;
        } catch (OutOfMemoryError none) {
            // there is no memory for new queues: the old ones are kept until a later call of this method, or as long as
            // the connection exists
        }
    }

    void clear() {
        rotation.clear();
        waiting.clear();
        // a handler may hold the connection, and with it these queues, for a long time after the end of the connection
        shrink();
        taken = 0;
        wholes = 0;
        following = 0;
        bytes = 0;
    }
}
