package dev.rpcx;

import dev.rpcx.codec.HeapArray;
import io.netty.buffer.ByteBuf;
import java.util.Arrays;

/**
 * Cuts what arrives on the classic wire into frames. A frame that is not whole holds what has arrived of it, at most
 * twice as much while its array grows, and its reader is asked before it holds more. A frame that may not be held is
 * passed over; only its begin is kept, which says whose call it was. No array outlives its frame. Event loop only.
 */
final class ClassicFrames {
    static final int LENGTH_BYTES = 4;

    /** Enough of a frame for the id that stands at its begin. */
    private static final int BEGIN_BYTES = 64;

    private static final int FIRST_BYTES = 256;
    private static final byte[] NOTHING = {};

    /** Told of what arrives. */
    interface Reader {
        /** @return whether so many more bytes may be held for the frame that is arriving */
        boolean hold(long bytes);

        /**
         * A whole frame: as many bytes of this array, which is the reader's from now on. What it holds has been asked
         * for.
         */
        void frame(byte[] frame, int bytes);

        /** The frame that is arriving is held no longer, but for its begin, which is not asked for: it passes. */
        void passes();

        /** A frame that has not been held has passed. @param begin its first bytes, which may be cut anywhere */
        void passed(byte[] begin, int bytes, int length);
    }

    private final int maxBytes;
    private final int maxPassedBytes;
    private final Reader reader;

    private int lengthBytes;
    private int length;
    private byte[] frame = NOTHING;
    private int arrived;
    private boolean isPassed;
    private long beganNanos;
    private long firstBeganNanos;

    /**
     * @param maxBytes of a frame
     * @param maxPassedBytes of a frame that is passed over; one that says more ends the connection
     */
    ClassicFrames(int maxBytes, int maxPassedBytes, Reader reader) {
        this.maxBytes = maxBytes;
        this.maxPassedBytes = maxPassedBytes;
        this.reader = reader;
    }

    /** Whether a frame has begun and not ended. */
    boolean isCut() {
        return lengthBytes > 0;
    }

    /** When the frame that is not whole has begun, by a clock that stands still while this side does not read. */
    long beganNanos() {
        return beganNanos;
    }

    /** The same by a clock that goes on meanwhile: a peer that reads no replies makes pauses as it likes. */
    long firstBeganNanos() {
        return firstBeganNanos;
    }

    /** What the frame that is not whole says that it has. */
    int length() {
        return lengthBytes == LENGTH_BYTES ? length : 0;
    }

    /** @throws WireFault a length that is none; or what the reader throws */
    void read(ByteBuf in, long nowNanos) {
        while (in.isReadable()) {
            if (lengthBytes < LENGTH_BYTES) {
                readLength(in, nowNanos);
            } else {
                take(in);
            }
            if (lengthBytes == LENGTH_BYTES && arrived == length) {
                end();
            }
        }
    }

    private void readLength(ByteBuf in, long nowNanos) {
        if (lengthBytes == 0) {
            beganNanos = nowNanos;
            firstBeganNanos = nowNanos;
            length = 0;
        }
        length = length << 8 | in.readUnsignedByte();
        lengthBytes++;
        if (lengthBytes == LENGTH_BYTES) {
            if (length < 0 || length > maxPassedBytes) {
                throw new WireFault("classic frame of " + length + " bytes (expected: 0 to " + maxPassedBytes + ")");
            }
            if (length > maxBytes) {
                pass();
            }
        }
    }

    private void take(ByteBuf in) {
        int bytes = Math.min(length - arrived, in.readableBytes());
        if (!isPassed && arrived + bytes > frame.length && !grow(arrived + bytes)) {
            pass();
        }
        int kept = Math.min(bytes, frame.length - arrived);
        if (kept > 0) {
            in.readBytes(frame, arrived, kept);
        }
        in.skipBytes(bytes - Math.max(kept, 0));
        arrived += bytes;
    }

    private boolean grow(int bytes) {
        int wanted = Math.min(length, Math.max(Math.max(bytes, FIRST_BYTES), 2 * frame.length));
        if (!reader.hold(HeapArray.taken(wanted) - HeapArray.taken(frame.length))) {
            return false;
        }
        frame = Arrays.copyOf(frame, wanted);
        return true;
    }

    private void pass() {
        isPassed = true;
        reader.passes();
        frame = Arrays.copyOf(frame, Math.min(length, BEGIN_BYTES));
    }

    private void end() {
        byte[] whole = frame;
        int bytes = arrived;
        boolean passed = isPassed;
        clear();
        if (passed) {
            reader.passed(whole, Math.min(bytes, whole.length), bytes);
        } else {
            reader.frame(whole, bytes);
        }
    }

    /** This side has not read for so long, which is not the peer's time. */
    void postpone(long nanos) {
        beganNanos += nanos;
    }

    /** Nothing could be read for so long, whatever the peer did: that is not its time by either clock. */
    void postponeFirst(long nanos) {
        firstBeganNanos += nanos;
    }

    /** Forgets what has begun. */
    void clear() {
        lengthBytes = 0;
        arrived = 0;
        isPassed = false;
        frame = NOTHING;
    }
}
