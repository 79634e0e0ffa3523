package dev.rpcx;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * One direction of a connection of the native wire on a bad network. It cuts what arrives into frames, lets each frame
 * of a call meet what {@link Faults} draw for it, and says what is passed on, in which order and from when on.
 * {@code dev.rpcx.testing.FaultyLink} carries that out between sockets and {@code FaultyPipe} within a client's
 * pipeline, so that a fault means the same in both. The class is public for the former alone.
 *
 * <p>What is no frame of the native wire ends the connection. One thread at a time; nothing here blocks.
 */
public final class FaultyFrames {
    private final Faults faults;
    private final Random random;
    private final ByteBuf arrived = Unpooled.buffer();
    private final ArrayDeque<Due> dues = new ArrayDeque<>();

    /** Frame that waits for the next one of a call, which it lets pass. */
    private @Nullable ByteBuf held;

    /** Time at which the frame that was delayed last is due; nothing behind it is due before. */
    private long openNanos = System.nanoTime();

    private boolean greeted;
    private boolean ended;

    /**
     * What is passed on next.
     *
     * @param frame the preface or a frame with its header, on the heap, so that none leaks that is never passed on;
     *     null where the connection ends instead, both ways and behind all that was passed on in this direction before
     * @param atNanos time of {@link System#nanoTime} before which it is not passed on
     */
    public record Due(@Nullable ByteBuf frame, long atNanos) {}

    /**
     * Draws from the seed of {@code badNetwork} for this connection and direction alone.
     *
     * @param connection number of the connection, counted from 0 in the order in which they were opened
     * @param up from the client to the server
     */
    public FaultyFrames(Faults badNetwork, long connection, boolean up) {
        faults = Given.notNull(badNetwork, "badNetwork", "Faults.seeded(…)");
        random = faults.random(connection, up);
    }

    /** Reads all of {@code bytes} and keeps what is no whole frame yet. @return how many faults that adds */
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
                    added += meetFate(frame);
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

    /** First of what has not been taken yet; null where nothing is. */
    public @Nullable Due peek() {
        return dues.peek();
    }

    /** Takes what {@link #peek} gives. */
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
     * Faults are drawn for frames of calls alone: how many PING frames there are follows from the clock, and not from
     * the seed.
     *
     * @return how many faults the frame has met
     */
    private int meetFate(ByteBuf frame) {
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
