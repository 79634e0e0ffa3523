package dev.rpcx.internal.wire;

import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import java.util.Arrays;

/**
 * Cuts the incoming bytes of the classic wire into frames. The array of an incomplete frame is at most twice as long as
 * the part of the frame that has arrived (at least 256 bytes, but never longer than the frame). The {@link Reader} is
 * asked before the array grows. If it refuses, or if the frame is longer than the limit, the frame is skipped: only its
 * beginning is kept, which has the id of its call. Each frame has its own array, which is not kept for the next frame.
 * Event loop only.
 */
public final class ClassicFrames {
    public static final int LENGTH_BYTES = 4;

    /**
     * Number of bytes that are kept of a frame that is skipped: enough for the id of its call, which stands at the
     * beginning.
     */
    private static final int BEGIN_BYTES = 64;

    private static final int FIRST_BYTES = 256;
    private static final byte[] NOTHING = {};

    /** Receives the frames, and decides how much memory they may take. */
    interface Reader {
        /**
         * Reserves memory for {@code bytes} more bytes of the frame that is arriving. Returns false if there is no room
         * for them; the frame is then skipped.
         */
        boolean reserve(long bytes);

        /**
         * Called with a complete frame, which fills the array up to the index {@code bytes} (exclusive). The array
         * belongs to the reader from now on. Its memory has been reserved with {@code reserve}.
         */
        void frame(byte[] frame, int bytes);

        /**
         * Called when it is clear that the arriving frame will be skipped. What has been reserved for it is no longer
         * needed: only the beginning of the frame is kept, for which {@code reserve} is not called.
         */
        void onSkip();

        /**
         * Called when all bytes of a skipped frame have arrived.
         *
         * @param begin array with the first bytes of the frame, which may end in the middle of a field
         * @param bytes number of these bytes
         * @param length length of the entire frame in bytes, not counting its length field
         */
        void onSkipped(byte[] begin, int bytes, int length);
    }

    private final int maxBytes;
    private final int maxSkippedBytes;
    private final Reader reader;

    private int lengthBytes;
    private int length;
    private byte[] frame = NOTHING;
    private int arrived;
    private boolean isSkipped;
    private long beganNanos;
    private long firstBeganNanos;

    /**
     * Creates an object that cuts the input of one connection into frames.
     *
     * @param maxBytes largest length in bytes of a frame that is kept; a longer frame is skipped
     * @param maxSkippedBytes largest length in bytes of a frame that is skipped; a frame that announces a greater
     *     length ends the connection
     */
    public ClassicFrames(int maxBytes, int maxSkippedBytes, Reader reader) {
        this.maxBytes = maxBytes;
        this.maxSkippedBytes = maxSkippedBytes;
        this.reader = reader;
    }

    /** Whether a frame has begun to arrive, and bytes of it are missing. */
    boolean isIncomplete() {
        return lengthBytes > 0;
    }

    /**
     * Returns the time at which the incomplete frame began to arrive, moved forward by each pause in reading since
     * then.
     */
    long beganNanos() {
        return beganNanos;
    }

    /**
     * Returns the time at which the incomplete frame began to arrive. Pauses in reading do not move this time forward,
     * since a peer that does not read its replies can cause as many pauses as it likes.
     */
    long firstBeganNanos() {
        return firstBeganNanos;
    }

    /** Returns the length in bytes that the incomplete frame announces; 0 until all of its length field has arrived. */
    int length() {
        return lengthBytes == LENGTH_BYTES ? length : 0;
    }

    /**
     * Reads all bytes of {@code in}, and hands each frame to the reader when the last of its bytes has arrived.
     *
     * @throws WireFault if a frame announces a length that is out of range; an exception that the reader throws is
     *     passed on
     */
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
            if (length < 0 || length > maxSkippedBytes) {
                throw new WireFault("classic frame of " + length + " bytes (expected: 0 to " + maxSkippedBytes + ")");
            }
            if (length > maxBytes) {
                skip();
            }
        }
    }

    private void take(ByteBuf in) {
        int bytes = Math.min(length - arrived, in.readableBytes());
        if (!isSkipped && arrived + bytes > frame.length && !grow(arrived + bytes)) {
            skip();
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
        if (!reader.reserve(HeapArray.heapBytes(wanted) - HeapArray.heapBytes(frame.length))) {
            return false;
        }
        frame = Arrays.copyOf(frame, wanted);
        return true;
    }

    private void skip() {
        isSkipped = true;
        reader.onSkip();
        frame = Arrays.copyOf(frame, Math.min(length, BEGIN_BYTES));
    }

    private void end() {
        byte[] whole = frame;
        int bytes = arrived;
        boolean skipped = isSkipped;
        clear();
        if (skipped) {
            reader.onSkipped(whole, Math.min(bytes, whole.length), bytes);
        } else {
            reader.frame(whole, bytes);
        }
    }

    /**
     * Moves {@code beganNanos} forward by a time in which this side did not read, so that this time does not count
     * against the peer.
     */
    void postpone(long nanos) {
        beganNanos += nanos;
    }

    /**
     * Moves {@code firstBeganNanos} forward by a time in which this side could not read, whatever the peer did, for
     * example because the event loop was held up. Unlike a pause in reading, such a time must not count against the
     * peer at all.
     */
    void postponeFirst(long nanos) {
        firstBeganNanos += nanos;
    }

    /** Drops the incomplete frame. */
    void clear() {
        lengthBytes = 0;
        arrived = 0;
        isSkipped = false;
        frame = NOTHING;
    }
}
