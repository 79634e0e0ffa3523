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
 * One direction of a connection of the native wire over a simulated bad network. This class cuts incoming bytes into
 * frames, applies to each frame of a call the faults that {@link Faults} draws for it, and says which frames are passed
 * on, in which order and from what time on. {@code dev.rpcx.testing.FaultyLink} passes them on between sockets, and
 * {@code FaultyPipe} within a client's pipeline, so that a fault means the same in both. This class is public for
 * {@code FaultyLink} alone.
 *
 * <p>Bytes that are no frame of the native wire end the connection. One thread at a time uses an object; no method
 * blocks.
 */
public final class FaultyFrames {
    private final Faults faults;
    private final Random random;
    private final ByteBuf arrived = Unpooled.buffer();
    private final ArrayDeque<Due> dues = new ArrayDeque<>();

    /** Frame that waits for the next frame of a call, which overtakes it; null if there is none. */
    private @Nullable ByteBuf held;

    /** Time at which the frame that was delayed last is due; no frame behind it is due earlier. */
    private long openNanos = System.nanoTime();

    private boolean greeted;
    private boolean ended;

    /**
     * A frame to be passed on, or the end of the connection.
     *
     * @param frame the preface, or a frame with its header, on the heap, so that a frame that is never passed on leaks
     *     nothing; null if the connection ends instead, in both directions and behind everything that was passed on in
     *     this direction before
     * @param atNanos time of {@link System#nanoTime} before which the frame is not passed on
     */
    public record Due(@Nullable ByteBuf frame, long atNanos) {}

    /**
     * Creates one direction of a connection, whose faults are drawn from the seed of {@code badNetwork} for this
     * connection and direction alone.
     *
     * @param connection number of the connection, counted from 0 in the order in which they were opened
     * @param up whether the direction is from the client to the server
     */
    public FaultyFrames(Faults badNetwork, long connection, boolean up) {
        faults = Given.notNull(badNetwork, "badNetwork", "Faults.seeded(…)");
        random = faults.random(connection, up);
    }

    /**
     * Reads all of {@code bytes}, and keeps the beginning of an incomplete frame.
     *
     * @return number of faults that have been drawn for the frames that are whole with {@code bytes}
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
                // behind the length stands the head, behind that the call's id
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

    /** Returns the first entry that has not been taken yet; null if there is none. */
    public @Nullable Due peek() {
        return dues.peek();
    }

    /** Takes the entry that {@link #peek} returns. */
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
     * Draws the faults of a frame of a call, and applies them. Other frames meet no faults: how many PING frames there
     * are follows from the clock, and not from the seed.
     *
     * @return number of faults that have been drawn for the frame
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
