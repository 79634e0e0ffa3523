package dev.rpcx.internal.wire;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Decides in which order the waiting messages of a connection send their frames. The messages that have begun take
 * turns, see {@code rotation}: the first one sends one frame, and goes to the end if it has more. Event loop only.
 *
 * <p>A message of several frames takes memory at its receiver from its first frame on, and the receiver refuses it if
 * its frames come too slowly. If many such messages were sent at the same time over a slow network, each would be too
 * slow. So each belongs to a size class, and only one message of each class is sent at a time; the others of the class
 * wait in order. The sizes within a class differ by at most four times, so a message waits only for messages that do
 * not take much longer than itself. Up to 4 MiB there are four classes.
 *
 * <p>A message of one frame may begin immediately, with one exception: if an earlier message of the same call or stream
 * has not begun and must arrive first, the later one waits for it.
 */
final class FrameScheduler {
    /**
     * Binary logarithm of the largest size in the first size class, which is 64 KiB. The largest size in each further
     * class is four times that of the class before.
     */
    private static final int FIRST_SIZE_BITS = 16;

    /** Size class of each message that fits into one frame. */
    private static final byte WHOLE = 0;

    /** Both queues are replaced by smaller ones if they have held more messages than this, and now hold few. */
    private static final int MAX_KEPT = 64;

    /**
     * Messages that have begun, in the order in which each sends its next frame: any number of messages of one frame,
     * and at most one message of each other size class. This is a linked set because a message has to be removed
     * quickly from the middle: many calls may end at the same time.
     */
    private Set<Outbound> rotation = new LinkedHashSet<>();

    /**
     * Messages that have not begun, in order. A message of several frames is here while another of its size class is
     * being sent. A message of one frame is here while an earlier message with the same id, which must arrive first, is
     * here.
     */
    private Set<Outbound> waiting = new LinkedHashSet<>();

    /**
     * Size classes of which a message of several frames is being sent, one bit for each. The message is in
     * {@code rotation}, or {@link #next} has returned it and it has not ended.
     */
    private int taken;

    /** Number of messages of one frame in both queues, including a message that {@link #next} has returned. */
    private int wholes;

    /** Number of messages of one frame in {@code waiting}. */
    private int following;

    /** Number of bytes that the messages in both queues have to send: the sum of {@link Outbound#waitingBytes}. */
    private long bytes;

    /** Largest number of messages that both queues have held together; approximate. */
    private int peak;

    /**
     * Whether no message has begun, apart from one that {@link #next} has returned. Then {@code waiting} is empty too,
     * unless messages wait for that one.
     */
    boolean isEmpty() {
        return rotation.isEmpty();
    }

    /** Whether both queues are empty. The message that {@link #next} has returned may still have frames to send. */
    boolean isLast() {
        return rotation.isEmpty() && waiting.isEmpty();
    }

    /**
     * Returns how many bytes the messages in both queues have to send. Those of the message that {@link #next} has
     * returned are not included.
     */
    long bytes() {
        return bytes;
    }

    /** Whether a message of one frame waits here. A later request or stream item must not overtake it. */
    boolean hasWhole() {
        return wholes > 0;
    }

    /**
     * Adds a message of which nothing has been sent.
     *
     * @param isAhead whether the peer must first receive an earlier message of the same id; if so, a message of one
     *     frame waits here until the earlier message has begun
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

    /** Returns the size class of a message that has {@code bytes} bytes and several frames; 1 for the first class. */
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
     * Takes the message that is to send the next frame out of the rotation, and returns it; null if there is none. The
     * caller sends one frame of the message. Then it calls {@link #goesOn} if the message has more frames, otherwise
     * {@link #ended}.
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
     * Adds the bytes that a message has to send to {@link #bytes}. The number is also stored in the message: when the
     * message is removed, its body may already be in use for something else.
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
     * Called when a message has been sent completely, or when no more of it will be sent. Then the next message of its
     * size class begins.
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

    /** Lets the messages of one frame begin that waited for the message with this id. */
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

    /** Replaces both queues by smaller ones if they have held many messages and now hold few or none. */
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
            // there is no memory for new queues, so the old ones are kept
        }
    }

    void clear() {
        rotation.clear();
        waiting.clear();
        // a handler may keep the connection, and these queues, in memory for a long time after the connection has ended
        shrink();
        taken = 0;
        wholes = 0;
        following = 0;
        bytes = 0;
    }
}
