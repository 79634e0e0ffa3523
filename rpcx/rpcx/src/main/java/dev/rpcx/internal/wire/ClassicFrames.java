package dev.rpcx.internal.wire;

import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import java.util.Arrays;

/**
 * Cuts the incoming bytes of the classic wire into frames. Memory for a frame is allocated only as its bytes arrive: at
 * most twice what has arrived, but at least 256 bytes, and never more than the frame. If the {@link Reader} refuses
 * more memory, or if the frame is too long, the frame is skipped, and only its beginning is kept, which has the call's
 * id. Each frame has its own array. Event loop only.
 */
public final class ClassicFrames {
    public static final int LENGTH_BYTES = 4;

    /** Number of bytes that are kept of a skipped frame: enough for the call's id. */
    private static final int BEGIN_BYTES = 64;

    private static final int FIRST_BYTES = 256;
    private static final byte[] NOTHING = {};

    /** Receives the frames, and decides how much memory they may take. */
    interface Reader {
        /**
         * Reserves memory for {@code bytes} more bytes of the arriving frame. Returns false if there is none; the frame
         * is then skipped.
         */
        boolean reserve(long bytes);

        /**
         * Called with a complete frame: the first {@code bytes} bytes of the array, which belongs to the reader from
         * now on. Its memory has been reserved with {@code reserve}.
         */
        void frame(byte[] frame, int bytes);

        /** Called when the arriving frame begins to be skipped. What has been reserved for it is no longer needed. */
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
     * Cuts the input of one connection into frames.
     *
     * @param maxBytes maximum length in bytes of a frame that is kept; a longer frame is skipped
     * @param maxSkippedBytes maximum length in bytes of a frame that is skipped; a longer frame ends the connection
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

    /** Returns when the incomplete frame began to arrive, moved forward by each pause in reading since then. */
    long beganNanos() {
        return beganNanos;
    }

    /**
     * Returns when the incomplete frame began to arrive. Pauses in reading do not move this time, since a peer can
     * cause as many pauses as it likes.
     */
    long firstBeganNanos() {
        return firstBeganNanos;
    }

    /** Returns the length in bytes of the incomplete frame; 0 until its whole length field has arrived. */
    int length() {
        return lengthBytes == LENGTH_BYTES ? length : 0;
    }

    /**
     * Reads all of {@code in}, and gives each complete frame to the reader.
     *
     * @throws WireFault if the length of a frame is out of range; exceptions of the reader are passed on
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

    /** Moves {@code beganNanos} forward by a time in which this side did not read. */
    void postpone(long nanos) {
        beganNanos += nanos;
    }

    /**
     * Moves {@code firstBeganNanos} forward by a time in which this side could not read, for example because the event
     * loop was held up.
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
