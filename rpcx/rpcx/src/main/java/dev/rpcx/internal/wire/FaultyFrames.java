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
 * Simulates a bad network in one direction of one native connection, for tests. This class cuts the incoming bytes into
 * frames, applies {@link Faults} to them, and says which frames to pass on, in which order and when. {@code FaultyPipe}
 * passes them on in a client's pipeline, and {@code dev.rpcx.testing.FaultyLink} between sockets. This class is public
 * only because {@code FaultyLink} is in another package.
 *
 * <p>A frame length that the native wire does not allow ends the connection. The first eight bytes and the contents of
 * frames are not checked. This class is not thread-safe. No method blocks.
 */
public final class FaultyFrames {
    private final Faults faults;
    private final Random random;
    private final ByteBuf arrived = Unpooled.buffer();
    private final ArrayDeque<Due> dues = new ArrayDeque<>();

    /**
     * Frame that is passed on after the next frame of a call, no matter of which call; null if no frame is held back.
     */
    private @Nullable ByteBuf held;

    /**
     * Earliest time, by {@link System#nanoTime}, at which the next frame that is added is passed on. A delayed frame
     * moves this time, and so delays all frames behind it.
     */
    private long openNanos = System.nanoTime();

    private boolean greeted;
    private boolean ended;

    /**
     * A frame that is to be passed on, or the end of the connection in both directions.
     *
     * @param frame all bytes of the frame, or the bytes with which the connection begins; null for the end of the
     *     connection, which comes after all earlier frames of this direction. The buffer is on the heap, so that
     *     nothing leaks if nobody passes the frame on.
     * @param atNanos earliest time, by {@link System#nanoTime}, at which the frame is passed on or the connection ends
     */
    public record Due(@Nullable ByteBuf frame, long atNanos) {}

    /**
     * Creates the simulation of one direction of a connection. The seed of {@code badNetwork}, the connection and the
     * direction determine the random numbers that choose the faults.
     *
     * @param connection number of the connection, counted from 0 in the order in which the connections were opened
     * @param up true for the direction from the client to the server, false for the opposite direction
     */
    public FaultyFrames(Faults badNetwork, long connection, boolean up) {
        faults = Given.notNull(badNetwork, "badNetwork", "Faults.seeded(…)");
        random = faults.random(connection, up);
    }

    /**
     * Reads all of {@code bytes}, and applies faults to the frames that are complete now. The bytes of an incomplete
     * frame are kept until the rest of the frame is added.
     *
     * @return number of faults chosen, including those without effect, such as a doubled frame that is lost
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
                // The length is followed by one byte with the type and flags of the frame, and then by the id.
                int type = arrived.getByte(arrived.readerIndex() + header) & Wire.TYPE_MASK;
                int id = arrived.getInt(arrived.readerIndex() + header + 1);
                boolean isOfCall = id != 0 && type != Wire.PING && type != Wire.PONG;
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

    /** Returns the next frame to pass on, or the end of the connection, without removing it; null if there is none. */
    public @Nullable Due peek() {
        return dues.peek();
    }

    /** Removes and returns the entry that {@link #peek} returns. */
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
     * Applies random faults to a frame of a call. Other frames get no faults, because their number varies: the number
     * of PING frames, for example, depends on the clock. If such frames got faults, the same seed would give different
     * faults each time.
     *
     * @return number of faults chosen, including those without effect
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
