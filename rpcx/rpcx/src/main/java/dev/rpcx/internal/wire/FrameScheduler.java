package dev.rpcx.internal.wire;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Chooses which waiting message of a connection sends the next frame. A message begins when it joins {@link #rotation}.
 * The messages in the rotation take turns, and send one frame in each turn. All methods must be called on the event
 * loop.
 *
 * <p>A message of several frames belongs to a size class, for example to the class of more than 64 KiB and at most 256
 * KiB. Only one message of each class is sent at a time, and the others of the class wait in order. Otherwise many
 * large messages could share a slow network, and the receiver would refuse messages whose frames come too slowly. The
 * largest message of a class has at most four times the size of the smallest. So a message waits only for messages that
 * do not take much longer than itself. The first four classes go up to 64 KiB, 256 KiB, 1 MiB and 4 MiB.
 *
 * <p>A message of one frame normally begins immediately. The exception is a message that the peer must receive behind
 * an earlier message of the same call or stream: the later message waits until the earlier message has begun.
 */
final class FrameScheduler {
    /**
     * Binary logarithm of the largest size, in bytes, of the messages in the first size class. This size is 64 KiB. In
     * each further class, the largest size is four times that of the class before.
     */
    private static final int FIRST_SIZE_BITS = 16;

    /** Value of {@link Outbound#sizeClass} for a message that fits into one frame. */
    private static final byte WHOLE = 0;

    /**
     * {@link #shrink} replaces {@code rotation} and {@code waiting} by smaller queues if the two together have held
     * more messages than this number, and now hold at most a quarter of this number.
     */
    private static final int MAX_KEPT = 64;

    /**
     * Messages that take turns to send one frame, in the order of their turns. This set can contain any number of
     * messages that fit into one frame. Of larger messages, it contains at most one of each size class, and the others
     * are in {@link #waiting}. The set is linked because many calls can end at the same time, and each of their
     * messages has to be removed quickly from the middle.
     */
    private Set<Outbound> rotation = new LinkedHashSet<>();

    /**
     * Messages that have not joined {@code rotation}, in the order in which they were added. There are two kinds:
     *
     * <ul>
     *   <li>A message of several frames waits until no other message of its size class is being sent.
     *   <li>A message of one frame waits until an earlier message with the same id has left this set. The peer must
     *       receive the beginning of that earlier message first.
     * </ul>
     */
    private Set<Outbound> waiting = new LinkedHashSet<>();

    /**
     * Set of bits that shows in which size classes a message of several frames is being sent. The bit {@code 1 << n}
     * stands for the class n, and the first class has n = 1.
     */
    private int taken;

    /** Number of one-frame messages that have been added, but have been neither sent nor removed. */
    private int wholes;

    /** Number of messages in {@code waiting} that fit into one frame. Each of them has to follow an earlier message. */
    private int following;

    /** Number of bytes that the messages in {@code rotation} and {@code waiting} have to send. */
    private long bytes;

    /**
     * Approximate largest number of messages that {@code rotation} and {@code waiting} together have held since
     * {@link #shrink} last replaced them.
     */
    private int peak;

    /**
     * Returns whether {@link #next} would return null. Even then, {@code waiting} can contain messages. They can begin
     * when {@link #ended} is called for the message that {@code next} has returned.
     */
    boolean isEmpty() {
        return rotation.isEmpty();
    }

    /**
     * Returns whether {@code rotation} and {@code waiting} are both empty. The message that {@link #next} has returned
     * can still have frames to send.
     */
    boolean isLast() {
        return rotation.isEmpty() && waiting.isEmpty();
    }

    /**
     * Returns the number of bytes that the messages in {@code rotation} and {@code waiting} have to send. The bytes of
     * the message that {@link #next} has returned are not included.
     */
    long bytes() {
        return bytes;
    }

    /**
     * Returns whether a message of one frame waits to be sent. A later request or stream item must not overtake such a
     * message.
     */
    boolean hasWhole() {
        return wholes > 0;
    }

    /**
     * Adds a message of which nothing has been sent.
     *
     * @param isAhead whether the peer must first receive the beginning of an earlier message with the same id. If true,
     *     a message that fits into one frame waits while the earlier message is in {@code waiting}. For larger
     *     messages, this parameter has no effect
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
     * Returns the size class, 1 or higher, of a message of several frames that has {@code bytes} bytes. For example, a
     * message of 100 KiB is in class 2.
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
     * Returns the message that has to send the next frame, and takes the message out of the rotation. Returns null if
     * no message is in the rotation. The caller sends one frame of the message, and then calls {@link #goesOn} if the
     * message has more frames, otherwise {@link #ended}.
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
     * Stores in a message how many bytes the message has to send, and adds the number to {@link #bytes}. The number is
     * stored because the body can already be in use for something else when the message is removed.
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
     * Called when all of a message has been sent, or when the rest of the message is not to be sent. The next waiting
     * message of the same size class then begins.
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

    /**
     * Moves those messages from {@code waiting} to {@code rotation} that have this id and fit into one frame. They have
     * waited for an earlier message with the same id, which has now begun or been removed.
     */
    private void letFollow(int id) {
        if (following == 0) {
            // no message of one frame is in "waiting"; without this check, each removal of a message would search all
            // of "waiting"
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

    /**
     * Removes a message that will send no more frames. Does nothing if the message is neither in {@code rotation} nor
     * in {@code waiting}.
     */
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

    /**
     * Frees memory by replacing {@code rotation} and {@code waiting} by smaller ones. Does so only if the queues have
     * held many messages and now hold few.
     */
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
            // there is no memory for new queues, so the old queues are kept
        }
    }

    void clear() {
        rotation.clear();
        waiting.clear();
        // large queues are replaced by smaller ones, because a handler can keep the ended connection in memory for a
        // long time
        shrink();
        taken = 0;
        wholes = 0;
        following = 0;
        bytes = 0;
    }
}
