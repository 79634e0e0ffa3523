package dev.rpcx.internal.wire;

import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import java.util.Arrays;

/**
 * Cuts the bytes that arrive on a connection of the classic wire into frames. A frame is a length of four bytes, and
 * then one message. In this class, the length of a frame does not count these four bytes. Memory for a frame is
 * allocated only as its bytes arrive, so that a peer cannot use up memory by announcing a long frame. If a frame is too
 * long, or if the {@link Reader} has no memory for it, the frame is skipped, and only its first bytes are kept. Only
 * the event loop uses this class.
 */
public final class ClassicFrames {
    public static final int LENGTH_BYTES = 4;

    /**
     * Maximum number of bytes that are kept of a skipped frame. From these bytes, the id of the call is read, and at a
     * client also whether the reply has a result.
     */
    private static final int MAX_BEGIN_BYTES = 64;

    private static final int FIRST_BYTES = 256;
    private static final byte[] NOTHING = {};

    /** Receives the frames of one connection, and decides how much memory an arriving frame gets. */
    interface Reader {
        /**
         * Reserves {@code bytes} more bytes of memory for the frame that is arriving. If there is no memory, this
         * method returns false, and {@code ClassicFrames} skips the frame.
         */
        boolean reserve(long bytes);

        /**
         * Receives a complete frame without its length. The first {@code bytes} bytes of the array are the frame's
         * message. From now on, the array belongs to this {@code Reader}. The memory of the array has been reserved
         * with {@link #reserve}.
         */
        void frame(byte[] frame, int bytes);

        /**
         * Notifies the reader that the arriving frame is skipped. The memory that has been reserved for this frame is
         * no longer needed.
         */
        void onSkip();

        /**
         * Notifies the reader that all bytes of a skipped frame have arrived.
         *
         * @param begin the first bytes of the frame, which can end in the middle of a field
         * @param bytes number of these first bytes
         * @param length length in bytes of the entire frame, without the four bytes in front that give this length
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

    /** Whether a whole frame has arrived, so that the peer does speak the classic wire. */
    private boolean hasRead;

    private long beganNanos;
    private long firstBeganNanos;

    /**
     * Creates the object that cuts the input of one connection into frames.
     *
     * @param maxBytes maximum length in bytes of a frame that the reader receives; a longer frame is skipped
     * @param maxSkippedBytes maximum length in bytes of a frame that is skipped; a longer frame ends the connection
     */
    public ClassicFrames(int maxBytes, int maxSkippedBytes, Reader reader) {
        this.maxBytes = maxBytes;
        this.maxSkippedBytes = maxSkippedBytes;
        this.reader = reader;
    }

    /** Returns true if the first byte of a frame has arrived and the last byte of that frame has not. */
    boolean isIncomplete() {
        return lengthBytes > 0;
    }

    /**
     * Returns the time in nanoseconds at which the incomplete frame began to arrive. Each pause in reading, and
     * each long time in which the event loop was held up, is added to the result. So neither counts in the time that
     * the frame has taken.
     */
    long beganNanos() {
        return beganNanos;
    }

    /**
     * Returns the time in nanoseconds at which the incomplete frame began to arrive. Each long time in which the event
     * loop was held up is added to the result, so that it does not make the frame late. Pauses in reading are not
     * added, since a peer can cause as many pauses as it likes.
     */
    long firstBeganNanos() {
        return firstBeganNanos;
    }

    /** Returns the length of the incomplete frame in bytes; 0 until all four bytes of the length have arrived. */
    int length() {
        return lengthBytes == LENGTH_BYTES ? length : 0;
    }

    /**
     * Reads all of {@code in}, and passes each frame that is complete now to the reader. Exceptions that the reader
     * throws are thrown here too.
     *
     * @throws WireFault if the length of a frame is out of range
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
            if (!hasRead && length >>> Short.SIZE == ConnectionErrors.TLS_ALERT) {
                throw new WireFault(ConnectionErrors.PEER_USES_TLS);
            }
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
        frame = Arrays.copyOf(frame, Math.min(length, MAX_BEGIN_BYTES));
    }

    private void end() {
        hasRead = true;
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

    /** Adds {@code nanos} to the result of {@link #beganNanos}. This side did not read for that time. */
    void postpone(long nanos) {
        beganNanos += nanos;
    }

    /**
     * Adds {@code nanos} to the result of {@link #firstBeganNanos}. For this time, this side was unable to read, for
     * example because the event loop was held up.
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
