package dev.rpcx.internal.wire;

import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import java.util.Arrays;

/**
 * Cuts the incoming bytes of the classic wire into frames. An incomplete frame holds the bytes that have arrived of it,
 * or at most twice as many while its array grows, and the reader is asked before the frame holds more. A frame that may
 * not be held is skipped: only its beginning is kept, which has the id of its call. No array outlives its frame.
 * Event loop only.
 */
public final class ClassicFrames {
    public static final int LENGTH_BYTES = 4;

    /** Bytes that are kept of a frame that is skipped: enough for the id at its beginning. */
    private static final int BEGIN_BYTES = 64;

    private static final int FIRST_BYTES = 256;
    private static final byte[] NOTHING = {};

    /** Receives the frames. */
    interface Reader {
        /** @return whether {@code bytes} more bytes may be held for the frame that is arriving */
        boolean reserve(long bytes);

        /**
         * Called with a whole frame: the first {@code bytes} bytes of the array, which belongs to the reader from now
         * on. {@code reserve} has been asked for the memory of the array.
         */
        void frame(byte[] frame, int bytes);

        /**
         * Called when the arriving frame is about to be skipped. It is no longer held, except for its beginning,
         * for which {@code reserve} is not asked.
         */
        void onSkip();

        /**
         * Called when a skipped frame has ended.
         *
         * @param begin first bytes of the frame, which may be cut anywhere
         * @param bytes number of these bytes
         * @param length length of the whole frame in bytes
         */
        void onSkipped(byte[] begin, int bytes, int length);
    }

    private final int maxBytes;
    private final int maxPassedBytes;
    private final Reader reader;

    private int lengthBytes;
    private int length;
    private byte[] frame = NOTHING;
    private int arrived;
    private boolean isSkipped;
    private long beganNanos;
    private long firstBeganNanos;

    /**
     * @param maxBytes largest length of a frame that is held
     * @param maxPassedBytes largest length of a frame that is skipped; a frame that announces more ends the
     *     connection
     */
    public ClassicFrames(int maxBytes, int maxPassedBytes, Reader reader) {
        this.maxBytes = maxBytes;
        this.maxPassedBytes = maxPassedBytes;
        this.reader = reader;
    }

    /** Whether a frame has begun and not ended. */
    boolean isIncomplete() {
        return lengthBytes > 0;
    }

    /** Time at which the incomplete frame began, by a clock that stands still while this side does not read. */
    long beganNanos() {
        return beganNanos;
    }

    /**
     * Time at which the incomplete frame began, by a clock that goes on while this side does not read: a peer that
     * reads no replies causes such pauses as it likes.
     */
    long firstBeganNanos() {
        return firstBeganNanos;
    }

    /** Length in bytes that the incomplete frame announces; 0 until its length field has arrived whole. */
    int length() {
        return lengthBytes == LENGTH_BYTES ? length : 0;
    }

    /** @throws WireFault if a length is out of range; whatever the reader throws is thrown too */
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
        if (!reader.reserve(HeapArray.taken(wanted) - HeapArray.taken(frame.length))) {
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

    /** Moves {@code beganNanos} on by a time in which this side has not read, which is not the peer's time. */
    void postpone(long nanos) {
        beganNanos += nanos;
    }

    /**
     * Moves {@code firstBeganNanos} on by a time in which nothing could be read, whatever the peer did: that is not the
     * peer's time by either clock.
     */
    void postponeFirst(long nanos) {
        firstBeganNanos += nanos;
    }

    /** Forgets the incomplete frame. */
    void clear() {
        lengthBytes = 0;
        arrived = 0;
        isSkipped = false;
        frame = NOTHING;
    }
}
