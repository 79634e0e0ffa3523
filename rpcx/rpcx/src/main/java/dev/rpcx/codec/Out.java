package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Date;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Writes messages in Protobuf's wire format. An object writes one message at a time and is not thread-safe. The class
 * is public only because generated codecs call it.
 *
 * <p>A message is written once, from front to back, into a byte array, and no size is computed in advance. If the
 * target buffer is on the heap, the bytes are written directly into the array of that buffer. For any other target, the
 * bytes are written into an array of this object, which is copied to the target at the end. Only the large byte arrays
 * of the outermost message are copied directly to such a target, each after the bytes that precede it.
 *
 * <p>The length of a nested message stands before the message, but is known only after it. So a few bytes are reserved
 * for the length, namely as many as the length of the previous message of the same type took. If the length takes more
 * or fewer bytes, the nested message is moved.
 *
 * <p>All scalars are written by plain final methods of this class, so that the just-in-time compiler can inline the
 * calls.
 */
public final class Out extends Pool.Scratch {
    // The next three handles need only plain writes: no other thread uses the bytes of a message that is being written.
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle LONG_BIG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN)
            .withInvokeExactBehavior();

    /** The maximum size in bytes of an array that is kept for the next message. A larger array is dropped. */
    private static final int MAX_KEPT_BYTES = 256 << 10;

    /**
     * The maximum length of a string that {@code rawString} first tries to copy as ASCII, in a loop. For longer strings
     * the JDK's vectorised encoder is faster. The number has to be at most 127, so that the length of the string takes
     * one byte.
     */
    private static final int MAX_LOOP_CHARS = 96;

    /**
     * The minimum size in bytes of a byte array that is copied directly to a target buffer outside the heap. Smaller
     * arrays are first copied into {@code buf}, and so are all arrays in nested messages, because the length of a
     * nested message is not known before its end.
     */
    private static final int MIN_PASSED_ON_BYTES = 4 << 10;

    /** The maximum number of bytes that the length of a message, string or array takes as a varint. */
    private static final int MAX_LENGTH_BYTES = 5;

    /** A mask of the highest bit in each of eight bytes. In a varint, this bit says that another byte follows. */
    private static final long CONTINUATION_BITS = 0x80808080_80808080L;

    private static final Pool<Out> POOL = new Pool<>(Out::new);
    private static final byte[] NONE = {};
    private static final ByteBuffer EMPTY = ByteBuffer.wrap(NONE);

    private final CharsetEncoder utf8 = StandardCharsets.UTF_8.newEncoder();
    private final CharBuffer chars = CharBuffer.allocate(1024);
    /**
     * A wrapper of {@code buf}, through which the string encoder writes. If {@code buf} has been replaced by another
     * array, {@code encode} creates a new wrapper.
     */
    private ByteBuffer bytes = EMPTY;

    private byte[] own = new byte[512];
    private byte[] buf = In.noArray();
    private int pos;
    private int end;
    /**
     * The index in {@code buf} at which the message starts, if {@code buf} is the array of the target buffer. If the
     * target buffer is not on the heap, {@code buf} is {@link #own}, and the index is 0.
     */
    private int base;

    private @Nullable ByteBuf target;
    private boolean heap;
    private int targetStart;
    /** The number of bytes of the message that have already been copied to a target buffer outside the heap. */
    private int passedOn;

    private int depth;
    private Limits limits = Limits.STANDARD;

    /** The {@link Codecs} object of the message that is being written; null while no message is written. */
    private @Nullable Codecs codecs;

    /**
     * The {@link MessageCodec#number} of the codec whose message is being written. A reference to the codec would be
     * slower, because G1 can execute a memory fence after a store of a reference.
     */
    private int currentNumber;

    private Out() {}

    static void write(Codecs codecs, MessageCodec codec, Object value, ByteBuf target) {
        Out out = POOL.take();
        int start = target.writerIndex();
        boolean done = false;
        try {
            out.codecs = codecs;
            out.currentNumber = codec.number;
            out.open(target, codecs.limits());
            out.depth = 1;
            codec.write(value, out);
            out.close();
            done = true;
        } catch (CodecException e) {
            throw e;
        } catch (Throwable e) {
            // the exception usually comes from an accessor, or from a buffer that is not allowed to grow
            throw CodecException.ofForeign(out.name() + " could not be written: ", e);
        } finally {
            out.reset();
            POOL.give(out);
            if (!done) {
                // this has to be the last step, because it throws if an accessor has changed the buffer
                target.writerIndex(start);
            }
        }
    }

    private void open(ByteBuf to, Limits within) {
        target = to;
        targetStart = to.writerIndex();
        if (limits != within) {
            limits = within;
        }
        passedOn = 0;
        heap = to.hasArray();
        if (heap) {
            buf = to.array();
            base = to.arrayOffset() + targetStart;
            pos = base;
            end = to.arrayOffset() + to.capacity();
        } else {
            buf = own;
            base = 0;
            pos = 0;
            end = buf.length;
        }
    }

    private void close() {
        ByteBuf to = target();
        if (written() > limits.messageBytes()) {
            throw tooLarge();
        }
        if (heap) {
            to.writerIndex(pos - to.arrayOffset());
        } else {
            to.writeBytes(buf, 0, pos);
        }
    }

    private void reset() {
        target = null;
        codecs = null;
        buf = In.noArray();
        if (heap && bytes != EMPTY) {
            bytes = EMPTY;
        }
        pos = 0;
        end = 0;
        if (own.length > MAX_KEPT_BYTES) {
            own = new byte[512];
            bytes = EMPTY;
        }
    }

    private ByteBuf target() {
        ByteBuf to = target;
        if (to == null) {
            throw new IllegalStateException("no message is being written");
        }
        return to;
    }

    private int written() {
        return passedOn + pos - base;
    }

    /**
     * Throws a {@link CodecException} if the message would be too large with {@code more} further bytes. For each
     * unfinished message, the check allows {@code MAX_LENGTH_BYTES} beyond the limit, because such a message can have
     * reserved too many bytes for its length. {@link #close} makes the exact check.
     */
    private void checkSize(int more) {
        if ((long) written() + more > (long) limits.messageBytes() + depth * (long) MAX_LENGTH_BYTES) {
            throw tooLarge();
        }
    }

    private CodecException tooLarge() {
        return new CodecException(
                CodecException.Code.TOO_LARGE,
                name() + ": more than " + limits.messageBytes() + " bytes (limit of a message)");
    }

    private @Nullable MessageCodec current() {
        Codecs writing = codecs;
        return writing == null ? null : writing.numbered(currentNumber);
    }

    private String name() {
        MessageCodec codec = current();
        return codec == null ? "message" : codec.type().protoName();
    }

    private void ensureRoom(int bytes) {
        if (end - pos < bytes) {
            grow(bytes);
        }
    }

    private void grow(int bytes) {
        // A caller may request more bytes than it will write. So this check counts only what has been written so far,
        // and close() checks the whole message.
        checkSize(0);
        if (heap) {
            ByteBuf to = target();
            to.writerIndex(pos - to.arrayOffset());
            HeapArray.grow(to, bytes);
            buf = to.array();
            base = to.arrayOffset() + targetStart;
            pos = to.arrayOffset() + to.writerIndex();
            end = to.arrayOffset() + to.capacity();
        } else {
            own = Arrays.copyOf(buf, Math.max(pos + bytes, (int) Math.min(Integer.MAX_VALUE - 64, buf.length * 2L)));
            buf = own;
            end = own.length;
        }
    }

    // Methods whose names start with put write a part of a value. They expect that the array has room for that part.

    private void putVarint(int v) {
        byte[] b = buf;
        int p = pos;
        if ((v & ~0x7F) == 0) {
            b[p++] = (byte) v;
        } else if ((v & ~0x3FFF) == 0) {
            b[p++] = (byte) (v | 0x80);
            b[p++] = (byte) (v >>> 7);
        } else if ((v & ~0x1FFFFF) == 0) {
            b[p++] = (byte) (v | 0x80);
            b[p++] = (byte) (v >>> 7 | 0x80);
            b[p++] = (byte) (v >>> 14);
        } else if ((v & ~0xFFFFFFF) == 0) {
            b[p++] = (byte) (v | 0x80);
            b[p++] = (byte) (v >>> 7 | 0x80);
            b[p++] = (byte) (v >>> 14 | 0x80);
            b[p++] = (byte) (v >>> 21);
        } else {
            b[p++] = (byte) (v | 0x80);
            b[p++] = (byte) (v >>> 7 | 0x80);
            b[p++] = (byte) (v >>> 14 | 0x80);
            b[p++] = (byte) (v >>> 21 | 0x80);
            b[p++] = (byte) (v >>> 28);
        }
        pos = p;
    }

    private void putVarint(long v) {
        if (v >>> 31 == 0) {
            putVarint((int) v);
            return;
        }
        if (v >>> 56 == 0) {
            // each group of seven bits becomes one byte; a single store writes all of them
            int bytes = 640 - 9 * Long.numberOfLeadingZeros(v) >>> 6;
            LONG.set(buf, pos, spread(v) | CONTINUATION_BITS & (1L << 8 * (bytes - 1)) - 1);
            pos += bytes;
            return;
        }
        byte[] b = buf;
        int p = pos;
        for (; v >>> 7 != 0; v >>>= 7) {
            b[p++] = (byte) (v | 0x80);
        }
        b[p++] = (byte) v;
        pos = p;
    }

    /**
     * Moves each of eight groups of seven bits into a byte of its own. The first step moves the halves apart, the
     * second step the quarters, and the last step the eighths.
     */
    private static long spread(long v) {
        long halves = v & 0xFFFFFFFL | (v & 0xFFFFFFF0000000L) << 4;
        long quarters = halves & 0x00003FFF_00003FFFL | (halves & 0x0FFFC000_0FFFC000L) << 2;
        return quarters & 0x007F007F_007F007FL | (quarters & 0x3F803F80_3F803F80L) << 1;
    }

    /**
     * Writes a tag, which contains a field's number and wire type, and makes room for one varint after the tag. The tag
     * is an unsigned int, because the largest field numbers need all 32 bits.
     */
    void tag(int tag) {
        ensureRoom(16);
        if (tag >>> 7 == 0) {
            buf[pos++] = (byte) tag;
        } else {
            putVarint(tag);
        }
    }

    private static int width(int length) {
        return length < 1 << 7 ? 1 : length < 1 << 14 ? 2 : length < 1 << 21 ? 3 : length < 1 << 28 ? 4 : 5;
    }

    // Methods whose names start with raw write a value without its tag.

    void rawBool(boolean v) {
        ensureRoom(1);
        buf[pos++] = (byte) (v ? 1 : 0);
    }

    void rawInt32(int v) {
        ensureRoom(10);
        if (v >= 0) {
            putVarint(v);
        } else {
            putVarint((long) v);
        }
    }

    void rawInt64(long v) {
        ensureRoom(10);
        putVarint(v);
    }

    void rawFloat(float v) {
        ensureRoom(4);
        INT.set(buf, pos, Float.floatToRawIntBits(v));
        pos += 4;
    }

    void rawDouble(double v) {
        ensureRoom(8);
        LONG.set(buf, pos, Double.doubleToRawLongBits(v));
        pos += 8;
    }

    void rawString(String s) {
        int n = s.length();
        if (n > MAX_LOOP_CHARS) {
            encode(s, n);
            return;
        }
        // the loop copies the string as if it were ASCII, and the bitwise OR of all characters shows afterwards whether
        // the string is ASCII. With an early exit, the compiler would not unroll the loop
        ensureRoom(n + 1);
        char[] piece = chars.array();
        s.getChars(0, n, piece, 0);
        byte[] b = buf;
        int p = pos + 1;
        int all = 0;
        for (int i = 0; i < n; i++) {
            char c = piece[i];
            all |= c;
            b[p + i] = (byte) c;
        }
        if (all >= 0x80) {
            encode(s, n);
            return;
        }
        b[p - 1] = (byte) n;
        pos = p + n;
    }

    /**
     * Writes a string in UTF-8, after the number of its bytes. The JDK's vectorised encoder encodes the string in
     * pieces, so that no copy of the entire string is needed. A string with half a surrogate pair is refused, whereas
     * {@code String.getBytes} would silently send a question mark.
     *
     * @param n length of the string in characters
     */
    private void encode(String s, int n) {
        checkSize(n);
        ensureRoom(n + 5);
        int guess = width(n);
        pos += guess;
        int start = pos - base;
        char[] piece = chars.array();
        for (int from = 0; from < n; ) {
            int k = Math.min(piece.length, n - from);
            if (k == piece.length && Character.isHighSurrogate(s.charAt(from + k - 1))) {
                k--;
            }
            s.getChars(from, from + k, piece, 0);
            ensureRoom(3 * k);
            if (bytes.array() != buf) {
                bytes = ByteBuffer.wrap(buf);
            }
            bytes.limit(end).position(pos);
            CoderResult result = utf8.reset().encode(chars.position(0).limit(k), bytes, true);
            if (result.isError()) {
                throw new CodecException(
                        CodecException.Code.REFUSED,
                        "in " + name() + ": a string with half a surrogate pair (no UTF-8 for it)");
            }
            pos = bytes.position();
            from += k;
        }
        endLength(start, guess);
    }

    void rawBytes(byte[] v) {
        ensureRoom(5);
        putVarint(v.length);
        if (depth == 1 && !heap && v.length >= MIN_PASSED_ON_BYTES) {
            checkSize(v.length);
            target().writeBytes(buf, 0, pos).writeBytes(v);
            passedOn += pos + v.length;
            pos = 0;
            return;
        }
        checkSize(v.length);
        ensureRoom(v.length);
        System.arraycopy(v, 0, buf, pos, v.length);
        pos += v.length;
    }

    void rawUuid(UUID v) {
        ensureRoom(17);
        buf[pos] = 16;
        LONG_BIG.set(buf, pos + 1, v.getMostSignificantBits());
        LONG_BIG.set(buf, pos + 9, v.getLeastSignificantBits());
        pos += 17;
    }

    void rawBigInteger(BigInteger v) {
        checkDigits(v.bitLength());
        if (v.bitLength() < 64) {
            ensureRoom(9);
            putTwosComplement(v.longValue(), v.bitLength() / 8 + 1);
        } else {
            rawBytes(v.toByteArray());
        }
    }

    private void putTwosComplement(long v, int bytes) {
        buf[pos] = (byte) bytes;
        LONG_BIG.set(buf, pos + 1, v << 64 - 8 * bytes);
        pos += 1 + bytes;
    }

    private void checkDigits(int bits) {
        if (bits > limits.digits() * 3.33) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    "in " + name() + ": a number of more than " + limits.digits() + " digits");
        }
    }

    void rawDecimal(BigDecimal v) {
        int scale = v.scale();
        if (scale > limits.scale() || scale < -limits.scale()) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    "in " + name() + ": a decimal of scale " + scale + " (limit: " + limits.scale() + " either way)");
        }
        ensureRoom(24);
        int zigzag = scale << 1 ^ scale >> 31;
        if (v.precision() <= 18) {
            // up to 18 digits fit in a long, and this is the only way to get them without a BigInteger
            long unscaled = v.scaleByPowerOfTen(scale).longValue();
            int at = pos++;
            if (unscaled != 0) {
                buf[pos++] = 1 << 3 | 2;
                putTwosComplement(unscaled, (64 - Long.numberOfLeadingZeros(unscaled ^ unscaled >> 63)) / 8 + 1);
            }
            putScale(zigzag);
            buf[at] = (byte) (pos - at - 1);
            return;
        }
        BigInteger unscaled = v.unscaledValue();
        checkDigits(unscaled.bitLength());
        byte[] bytes = unscaled.toByteArray();
        int length = 1 + width(bytes.length) + bytes.length + (zigzag == 0 ? 0 : 1 + width(zigzag));
        ensureRoom(length + 5);
        putVarint(length);
        buf[pos++] = 1 << 3 | 2;
        putVarint(bytes.length);
        System.arraycopy(bytes, 0, buf, pos, bytes.length);
        pos += bytes.length;
        putScale(zigzag);
    }

    private void putScale(int zigzag) {
        if (zigzag != 0) {
            buf[pos++] = 2 << 3;
            putVarint(zigzag);
        }
    }

    void rawInstant(Instant v) {
        rawTime(v.getEpochSecond(), v.getNano());
    }

    /**
     * Writes a duration as seconds and nanoseconds. In Java the nanoseconds are never negative, but in Protobuf they
     * have the sign of the seconds.
     */
    void rawDuration(Duration v) {
        long seconds = v.getSeconds();
        int nanos = v.getNano();
        if (seconds < 0 && nanos > 0) {
            seconds++;
            nanos -= 1_000_000_000;
        }
        rawTime(seconds, nanos);
    }

    void rawLocalDateTime(LocalDateTime v) {
        rawTime(v.toEpochSecond(ZoneOffset.UTC), v.getNano());
    }

    private void rawTime(long seconds, int nanos) {
        ensureRoom(24);
        int at = pos++;
        if (seconds != 0) {
            buf[pos++] = 1 << 3;
            putVarint(seconds);
        }
        if (nanos != 0) {
            buf[pos++] = 2 << 3;
            putVarint((long) nanos);
        }
        buf[at] = (byte) (pos - at - 1);
    }

    void rawDate(Date v) {
        long millis = v.getTime();
        rawTime(Math.floorDiv(millis, 1000L), 1_000_000 * Math.floorMod(millis, 1000));
    }

    void rawLocalTime(LocalTime v) {
        ensureRoom(24);
        int at = pos++;
        putTime(1, v);
        buf[at] = (byte) (pos - at - 1);
    }

    /** Writes the hours, minutes, seconds and nanoseconds of a time as fields with consecutive numbers. */
    private void putTime(int first, LocalTime v) {
        putInt32(first, v.getHour());
        putInt32(first + 1, v.getMinute());
        putInt32(first + 2, v.getSecond());
        putInt32(first + 3, v.getNano());
    }

    private void putInt32(int number, int v) {
        if (v != 0) {
            buf[pos++] = (byte) (number << 3);
            putVarint((long) v);
        }
    }

    void rawOffsetDateTime(OffsetDateTime v) {
        ensureRoom(64);
        int at = pos++;
        putInt32(1, v.getYear());
        putInt32(2, v.getMonthValue());
        putInt32(3, v.getDayOfMonth());
        putTime(4, v.toLocalTime());
        buf[pos++] = 8 << 3 | 2;
        rawTime(v.getOffset().getTotalSeconds(), 0);
        buf[at] = (byte) (pos - at - 1);
    }

    void rawZonedDateTime(ZonedDateTime v) {
        int start = beginRun();
        tag(1 << 3 | 2);
        rawTime(v.toEpochSecond(), v.getNano());
        tag(2 << 3 | 2);
        rawString(v.getZone().getId());
        endRun(start);
    }

    void rawLocalDate(LocalDate v) {
        ensureRoom(12);
        int at = pos++;
        long days = v.toEpochDay();
        if (days != 0) {
            buf[pos++] = 1 << 3;
            putVarint(days << 1 ^ days >> 63);
        }
        buf[at] = (byte) (pos - at - 1);
    }

    void rawMessage(Object v, MessageCodec codec) {
        ensureRoom(5);
        int guess = codec.lengthWidth;
        pos += guess;
        int start = pos - base;
        int outer = currentNumber;
        currentNumber = codec.number;
        if (++depth > limits.depth()) {
            throw tooDeep();
        }
        codec.write(v, this);
        depth--;
        currentNumber = outer;
        int width = endLength(start, guess);
        if (width != guess) {
            codec.lengthWidth = width;
        }
    }

    /**
     * Begins the elements of a packed list or set, and reserves one byte for their length.
     *
     * @return position of the first element's first byte, relative to {@code base}; the caller has to pass the position
     *     to {@link #endRun}
     */
    int beginRun() {
        ensureRoom(5);
        pos++;
        depth++;
        return pos - base;
    }

    /**
     * Begins an entry of a map, which is a nested message, and reserves one byte for the length of the entry.
     *
     * @return position of the entry's first byte, relative to {@code base}; the caller has to pass the position to
     *     {@link #endRun}
     */
    int beginEntry() {
        if (depth >= limits.depth()) {
            throw tooDeep();
        }
        return beginRun();
    }

    void endRun(int start) {
        depth--;
        endLength(start, 1);
    }

    /**
     * Writes the length of a value in front of the bytes of the value. These bytes have already been written. If the
     * length takes more or fewer bytes than were reserved for it, the bytes of the value are moved first.
     *
     * @param start index of the value's first byte, relative to {@code base}. An index in {@code buf} would be wrong if
     *     {@code buf} has been replaced by another array since the value began
     * @param guess number of bytes that were reserved for the length
     * @return number of bytes that the length takes
     */
    private int endLength(int start, int guess) {
        int length = pos - base - start;
        int width = width(length);
        if (width != guess) {
            ensureRoom(5);
            int at = base + start;
            System.arraycopy(buf, at, buf, at + width - guess, length);
            pos += width - guess;
        }
        int after = pos;
        pos = after - length - width;
        putVarint(length);
        pos = after;
        return width;
    }

    private CodecException tooDeep() {
        return new CodecException(
                CodecException.Code.TOO_DEEP,
                name() + ": more than " + limits.depth() + " messages inside each other, entries of maps among them");
    }

    /** Returns the exception for a value that is null where Protobuf has no null. */
    CodecException nullValue(int tag, String what) {
        MessageCodec codec = current();
        return new CodecException(
                CodecException.Code.NULL_VALUE,
                (codec == null ? "message" : codec.fieldName(tag >>> 3)) + ": " + what
                        + " is null (expected: a value; Optional or an annotation @Nullable on it allows null)");
    }

    // Generated codecs call the methods below, which write complete fields, with tag and value. Default values are not
    // sent, which Protobuf calls implicit presence.

    /** Writes a boolean field as a varint of 1. The value {@code false} is not sent. */
    public void bool(int tag, boolean v) {
        if (v) {
            tag(tag);
            buf[pos++] = 1;
        }
    }

    /**
     * Writes a field of type int, short, byte or char as a varint. The value 0 is not sent. A negative number takes ten
     * bytes, as Protobuf requires.
     */
    public void int32(int tag, int v) {
        if (v != 0) {
            tag(tag);
            if (v >= 0) {
                putVarint(v);
            } else {
                putVarint((long) v);
            }
        }
    }

    /** Writes a long field as a varint of up to ten bytes. The value 0 is not sent. */
    public void int64(int tag, long v) {
        if (v != 0) {
            tag(tag);
            putVarint(v);
        }
    }

    /** Writes a float field as four bytes. Positive zero is the default and is not sent, but negative zero is sent. */
    public void float32(int tag, float v) {
        if (Float.floatToRawIntBits(v) != 0) {
            tag(tag);
            rawFloat(v);
        }
    }

    /**
     * Writes a double field as eight bytes. Positive zero is the default and is not sent, but negative zero is sent.
     */
    public void float64(int tag, double v) {
        if (Double.doubleToRawLongBits(v) != 0) {
            tag(tag);
            rawDouble(v);
        }
    }

    /**
     * Writes a string field as the number of its bytes in UTF-8, followed by these bytes. An empty string is not sent.
     * If an accessor has returned null, this method throws a {@link CodecException} with the code {@code NULL_VALUE}.
     */
    public void string(int tag, @Nullable String v) {
        if (v == null) {
            throw nullValue(tag, "a string");
        }
        if (!v.isEmpty()) {
            tag(tag);
            rawString(v);
        }
    }

    /**
     * Writes a field of type {@code bytes} as the length of the array, followed by the bytes. An empty array is not
     * sent. If an accessor has returned null, this method throws a {@link CodecException} with the code
     * {@code NULL_VALUE}.
     */
    public void bytes(int tag, byte @Nullable [] v) {
        if (v == null) {
            throw nullValue(tag, "a byte array");
        }
        if (v.length > 0) {
            tag(tag);
            rawBytes(v);
        }
    }

    /** Writes a UUID field as a length of 16, followed by sixteen bytes. The value null is not sent. */
    public void uuid(int tag, @Nullable UUID v) {
        if (v != null) {
            tag(tag);
            rawUuid(v);
        }
    }

    /**
     * Writes a {@code BigInteger} field as a length, followed by the number in two's complement. The value null is not
     * sent.
     */
    public void bigInteger(int tag, @Nullable BigInteger v) {
        if (v != null) {
            tag(tag);
            rawBigInteger(v);
        }
    }

    /** Writes a decimal field as a message {@code rpcx.Decimal}. The value null is not sent. */
    public void decimal(int tag, @Nullable BigDecimal v) {
        if (v != null) {
            tag(tag);
            rawDecimal(v);
        }
    }

    /** Writes an instant field as a message {@code google.protobuf.Timestamp}. The value null is not sent. */
    public void instant(int tag, @Nullable Instant v) {
        if (v != null) {
            tag(tag);
            rawInstant(v);
        }
    }

    /** Writes a date field as a message {@code google.protobuf.Timestamp}. The value null is not sent. */
    public void date(int tag, @Nullable Date v) {
        if (v != null) {
            tag(tag);
            rawDate(v);
        }
    }

    /** Writes a duration field as a message {@code google.protobuf.Duration}. The value null is not sent. */
    public void duration(int tag, @Nullable Duration v) {
        if (v != null) {
            tag(tag);
            rawDuration(v);
        }
    }

    /** Writes a date field as a message {@code rpcx.LocalDate}. The value null is not sent. */
    public void localDate(int tag, @Nullable LocalDate v) {
        if (v != null) {
            tag(tag);
            rawLocalDate(v);
        }
    }

    /** Writes a date-time field as a message {@code rpcx.LocalDateTime}. The value null is not sent. */
    public void localDateTime(int tag, @Nullable LocalDateTime v) {
        if (v != null) {
            tag(tag);
            rawLocalDateTime(v);
        }
    }

    /** Writes a time field as a message {@code google.type.TimeOfDay}. The value null is not sent. */
    public void localTime(int tag, @Nullable LocalTime v) {
        if (v != null) {
            tag(tag);
            rawLocalTime(v);
        }
    }

    /** Writes a field with a date, time and offset as a message {@code google.type.DateTime}. Null is not sent. */
    public void offsetDateTime(int tag, @Nullable OffsetDateTime v) {
        if (v != null) {
            tag(tag);
            rawOffsetDateTime(v);
        }
    }

    /** Writes a field with a date, time and zone as a message {@code rpcx.ZonedDateTime}. Null is not sent. */
    public void zonedDateTime(int tag, @Nullable ZonedDateTime v) {
        if (v != null) {
            tag(tag);
            rawZonedDateTime(v);
        }
    }
}
