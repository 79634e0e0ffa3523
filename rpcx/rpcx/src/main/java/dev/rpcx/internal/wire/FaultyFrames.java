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
 * Simulates a bad network for one direction of one connection of the native wire. Cuts the incoming bytes into frames,
 * applies {@link Faults} to them, and says which frames to pass on, in which order and when. {@code FaultyPipe} passes
 * them on in a client's pipeline, and {@code dev.rpcx.testing.FaultyLink} between sockets. The class is public only
 * because {@code FaultyLink} is in another package.
 *
 * <p>Bytes that are no frame of the native wire end the connection. Not thread-safe. No method blocks.
 */
public final class FaultyFrames {
    private final Faults faults;
    private final Random random;
    private final ByteBuf arrived = Unpooled.buffer();
    private final ArrayDeque<Due> dues = new ArrayDeque<>();

    /** Frame that is passed on after the next frame of a call; null if there is none. */
    private @Nullable ByteBuf held;

    /**
     * Earliest time for the next frame, by {@link System#nanoTime}: the time until which the last delayed frame waits.
     */
    private long openNanos = System.nanoTime();

    private boolean greeted;
    private boolean ended;

    /**
     * A frame that is to be passed on, or the end of the connection.
     *
     * @param frame the preface, or a frame with its length and head, on the heap, so that nothing leaks if it is never
     *     passed on; null for the end of the connection in both directions, which comes after all earlier frames of
     *     this direction
     * @param atNanos time of {@link System#nanoTime} before which the frame must not be passed on
     */
    public record Due(@Nullable ByteBuf frame, long atNanos) {}

    /**
     * Creates the simulation of one direction of a connection. The seed of {@code badNetwork}, the connection and the
     * direction determine the faults.
     *
     * @param connection number of the connection, counted from 0 in the order in which the connections were opened
     * @param up whether the direction is from the client to the server
     */
    public FaultyFrames(Faults badNetwork, long connection, boolean up) {
        faults = Given.notNull(badNetwork, "badNetwork", "Faults.seeded(…)");
        random = faults.random(connection, up);
    }

    /**
     * Reads all of {@code bytes}, and applies faults to the frames that are complete now. The bytes of an incomplete
     * frame are kept.
     *
     * @return number of faults
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
                // a frame begins with its length, one byte of head, and the id of its call, which is 0 if there is no
                // call
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

    /** Returns the first entry without removing it; null if there is none. */
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
     * Applies random faults to a frame of a call. Other frames get no faults: the number of PINGs, for example, depends
     * on the clock, and the same seed would not always give the same faults.
     *
     * @return number of faults
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
