package dev.rpcx.internal.wire;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.WireFault;
import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Simulates a bad network for one direction of one connection of the native wire. This class cuts the incoming bytes
 * into frames, and applies to each frame of a call the faults that {@link Faults} chooses at random for that frame. It
 * then says which frames are to be passed on, in which order, and from what time on each of them may be passed on.
 * {@code dev.rpcx.testing.FaultyLink} passes these frames on between sockets, and {@code FaultyPipe} within the
 * pipeline of a client, so a fault means the same in both. This class is public only because {@code FaultyLink} is in
 * another package.
 *
 * <p>Bytes that are not a frame of the native wire end the connection. Not thread-safe: only one thread at a time may
 * use an object. No method blocks.
 */
public final class FaultyFrames {
    private final Faults faults;
    private final Random random;
    private final ByteBuf arrived = Unpooled.buffer();
    private final ArrayDeque<Due> dues = new ArrayDeque<>();

    /**
     * Frame that is out of order: it is passed on only after the next frame of a call. Null if there is no such frame.
     */
    private @Nullable ByteBuf held;

    /**
     * Time at which the frame that was delayed last is due, by {@link System#nanoTime}. No frame behind it is due
     * earlier.
     */
    private long openNanos = System.nanoTime();

    private boolean greeted;
    private boolean ended;

    /**
     * A frame that is to be passed on, or the end of the connection.
     *
     * @param frame the preface, or a frame with its length and head. It is on the heap, so that nothing leaks if it is
     *     never passed on. Null stands for the end of the connection in both directions. This end comes after all
     *     frames that were to be passed on in this direction before it
     * @param atNanos time of {@link System#nanoTime} before which the frame must not be passed on
     */
    public record Due(@Nullable ByteBuf frame, long atNanos) {}

    /**
     * Creates the simulation of one direction of a connection. Its faults are chosen by random numbers, which are made
     * from the seed of {@code badNetwork} for this connection and direction only.
     *
     * @param connection number of the connection, counted from 0 in the order in which the connections were opened
     * @param up whether the direction is from the client to the server
     */
    public FaultyFrames(Faults badNetwork, long connection, boolean up) {
        faults = Given.notNull(badNetwork, "badNetwork", "Faults.seeded(…)");
        random = faults.random(connection, up);
    }

    /**
     * Reads all of {@code bytes}, and chooses at random the faults of each frame that they complete. Bytes of an
     * incomplete frame are kept until the next call.
     *
     * @return number of faults that have been chosen for the completed frames
     */
    public int add(ByteBuf bytes) {
        Given.notNull(bytes, "bytes", "what has arrived");
        if (ended) {
            bytes.skipBytes(bytes.readableBytes());
            return 0;
        }
        arrived.writeBytes(bytes);
        int added = 0;
        try {
            if (!greeted && arrived.readableBytes() >= Wire.PREFACE_BYTES) {
                greeted = true;
                passOn(take(Wire.PREFACE_BYTES));
            }
            while (greeted && !ended) {
                int length = WireConnection.frameLength(arrived);
                if (length < 0) {
                    break;
                }
                int header = WireConnection.headerOf(length);
                if (arrived.readableBytes() < header + length) {
                    break;
                }
                // a frame begins with its length, one byte of head, and the call id, which is 0 if the frame belongs to
                // no call
                boolean isOfCall = arrived.getInt(arrived.readerIndex() + header + 1) != 0;
                ByteBuf frame = take(header + length);
                if (isOfCall) {
                    added += applyFaults(frame);
                } else {
                    passOn(frame);
                }
            }
        } catch (WireFault noFrame) {
            end();
        }
        arrived.discardReadBytes();
        return added;
    }

    /** Returns the first entry that has not been taken yet, without taking it; null if there is none. */
    public @Nullable Due peek() {
        return dues.peek();
    }

    /** Takes and returns the entry that {@link #peek} returns. */
    public @Nullable Due poll() {
        return dues.poll();
    }

    private ByteBuf take(int bytes) {
        return Unpooled.buffer(bytes).writeBytes(arrived, bytes);
    }

    private void passOn(ByteBuf frame) {
        dues.add(new Due(frame, openNanos));
    }

    private void end() {
        ended = true;
        dues.add(new Due(null, openNanos));
    }

    /**
     * Chooses at random the faults of a frame that belongs to a call, and applies them. Frames that belong to no call
     * get no faults. The number of PING frames, for example, depends on the clock and not on the seed: with faults for
     * them, the same seed would not always give the same faults.
     *
     * @return number of faults that have been chosen for the frame
     */
    private int applyFaults(ByteBuf frame) {
        Faults.Fate fate = faults.fate(random);
        if (fate.isDelayed()) {
            openNanos =
                    Math.max(openNanos, System.nanoTime()) + faults.delayedBy().toNanos();
        }
        if (fate.isCut()) {
            end();
        } else if (fate.isLate() && held == null && !fate.isLost()) {
            held = frame;
        } else {
            if (!fate.isLost()) {
                passOn(frame);
            }
            if (fate.isDoubled() && !fate.isLost()) {
                passOn(frame.copy());
            }
            if (held != null) {
                passOn(held);
                held = null;
            }
        }
        return countOf(fate);
    }

    private static int countOf(Faults.Fate fate) {
        return (fate.isDelayed() ? 1 : 0)
                + (fate.isLost() ? 1 : 0)
                + (fate.isDoubled() ? 1 : 0)
                + (fate.isLate() ? 1 : 0)
                + (fate.isCut() ? 1 : 0);
    }
}
