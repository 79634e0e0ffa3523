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
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Writes Protobuf's wire format. It is public only because generated codecs call it. Not thread-safe: an object belongs
 * to one message at a time.
 *
 * <p>Everything is written once, front to back, into a byte array. That is the target's own array if the target is a
 * heap buffer; otherwise it is an array that is kept between messages, and copied to the target at the end. Before a
 * message inside another, room is left for its length, as wide as the last message of that type needed. If that guess
 * was wrong, the bytes of the message are moved, mostly by one or two bytes. So no size is computed in advance, and no
 * string is read only to find the length of its encoding.
 *
 * <p>The class is longer than 400 lines because every scalar has its writer here, where the just-in-time compiler sees
 * plain final methods.
 */
public final class Out extends Pool.Scratch {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle LONG_BIG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN)
            .withInvokeExactBehavior();

    /** Max bytes of an array that is kept for the next message. What one rare message needed is not held for ever. */
    private static final int MAX_KEPT_BYTES = 256 << 10;

    /**
     * Max characters of a string that is first taken for ASCII and copied by a loop; for longer strings the JDK's
     * vectorised encoder is faster. The number may be at most 127, so that the length of such a string takes one byte.
     */
    private static final int MAX_LOOP_CHARS = 96;

    /**
     * Min bytes of a byte array that is copied straight to a direct buffer. The array has to belong to the outermost
     * message itself; any other byte array is first copied into {@code buf}.
     */
    private static final int MIN_PASSED_ON_BYTES = 4 << 10;

    /** Max bytes of a length: it is an int, which has five groups of seven bits. */
    private static final int MAX_LENGTH_BYTES = 5;

    /** Continuation bits of eight bytes of a varint, each of which says that another byte follows. */
    private static final long CONTINUATION_BITS = 0x80808080_80808080L;

    private static final Pool<Out> POOL = new Pool<>(Out::new);
    private static final byte[] NONE = {};
    private static final ByteBuffer EMPTY = ByteBuffer.wrap(NONE);

    private final CharsetEncoder utf8 = StandardCharsets.UTF_8.newEncoder();
    private final CharBuffer chars = CharBuffer.allocate(1024);
    /** The array {@code buf}, wrapped for the encoder. It is wrapped anew once {@code buf} is another array. */
    private ByteBuffer bytes = EMPTY;

    private byte[] own = new byte[512];
    private byte[] buf = In.noArray();
    private int pos;
    private int end;
    /** Index in {@code buf} at which the message starts; 0 for a target that is no heap buffer. */
    private int base;

    private @Nullable ByteBuf target;
    private boolean heap;
    private int targetStart;
    /** Number of bytes of the message that have already been copied to a direct target. */
    private int passedOn;

    private int depth;
    private Limits limits = Limits.STANDARD;

    /** Codecs that write the current message; null while no message is written. */
    private @Nullable Codecs codecs;

    /**
     * {@code MessageCodec.number} of the message that is being written. It is a number and not a reference for the
     * reason given at {@code In.current}.
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
            // an exception of an accessor, or of a buffer that may not grow
            throw CodecException.ofForeign(out.name() + " could not be written: ", e);
        } finally {
            out.reset();
            POOL.give(out);
            if (!done) {
                // comes last, since it throws if an accessor has changed the buffer
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
     * Throws if the message, with {@code more} further bytes, is too large. Each open message may have left more room
     * for its length than it will need, so that room is allowed in addition to the limit: a message of exactly the
     * limit has to reach {@link #close}, which makes the final check.
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
        // the number of bytes asked for may be more than will be written, so only what has been written is checked
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

    // Parts of a field's value. These methods do not check that there is room: their callers do.

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
            // writes one byte for each group of seven bits, all with a single store of eight bytes
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
     * Spreads eight groups of seven bits over eight bytes. First the two halves move apart, then the quarters, then the
     * eighths: the upper part of each pair is shifted up by one bit for each group in the lower part, which is by 4, 2
     * and 1.
     */
    private static long spread(long v) {
        long halves = v & 0xFFFFFFFL | (v & 0xFFFFFFF0000000L) << 4;
        long quarters = halves & 0x00003FFF_00003FFFL | (halves & 0x0FFFC000_0FFFC000L) << 2;
        return quarters & 0x007F007F_007F007FL | (quarters & 0x3F803F80_3F803F80L) << 1;
    }

    /**
     * Writes a tag, which is a field's number and wire type. It is unsigned, since the largest field numbers need all
     * 32 bits. There is room for one varint after the tag, so the caller need not ask for it.
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

    // Values without a tag, as they stand in a packed run or after a tag that has already been written.

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
        // the string is taken for ASCII until the bitwise OR of all its characters shows otherwise: the compiler
        // unrolls a loop that has no early exit
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
     * Writes a string with the JDK's vectorised encoder, in pieces, so that the string is not copied as a whole. Half a
     * surrogate pair has no form in UTF-8. The encoder reports it and the string is refused, whereas
     * {@code String.getBytes} would silently send a question mark.
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
            // up to 18 digits always fit in a long, and this is the only way to it that makes no BigInteger
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

    /** Writes a duration. Java's nanoseconds are never negative, while Protobuf's have the sign of the seconds. */
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
     * Opens a packed run.
     *
     * @return the start of the run, which is to be passed to {@link #endRun}
     */
    int beginRun() {
        ensureRoom(5);
        pos++;
        depth++;
        return pos - base;
    }

    /**
     * Opens an entry of a map, which is a message inside another.
     *
     * @return the start of the entry, which is to be passed to {@link #endRun}
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
     * Writes the length of what has been written since {@code start} in front of it. If the length needs another number
     * of bytes than {@code guess}, what has been written is moved first.
     *
     * @param start relative to {@code base}, since the array may have been replaced by another
     * @param guess number of bytes that were left for the length
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

    /** Returns the exception for a null where Protobuf has none. */
    CodecException nullValue(int tag, String what) {
        MessageCodec codec = current();
        return new CodecException(
                CodecException.Code.NULL_VALUE,
                (codec == null ? "message" : codec.fieldName(tag >>> 3)) + ": " + what
                        + " is null (expected: a value; Optional or an annotation @Nullable on it allows null)");
    }

    // Whole fields of implicit presence, of which the default value is not sent. These methods are called by generated
    // codecs.

    /** Writes {@code true} as a varint of 1; {@code false} is not sent. */
    public void bool(int tag, boolean v) {
        if (v) {
            tag(tag);
            buf[pos++] = 1;
        }
    }

    /** Writes a varint, which takes ten bytes for a negative number, as Protobuf requires; 0 is not sent. */
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

    /** Writes a varint of up to ten bytes; 0 is not sent. */
    public void int64(int tag, long v) {
        if (v != 0) {
            tag(tag);
            putVarint(v);
        }
    }

    /** Writes four bytes; positive 0 is not sent. Minus zero is sent, since it is not the default. */
    public void float32(int tag, float v) {
        if (Float.floatToRawIntBits(v) != 0) {
            tag(tag);
            rawFloat(v);
        }
    }

    /** Writes eight bytes; positive 0 is not sent. Minus zero is sent, since it is not the default. */
    public void float64(int tag, double v) {
        if (Double.doubleToRawLongBits(v) != 0) {
            tag(tag);
            rawDouble(v);
        }
    }

    /** Writes UTF-8 with its length before it. An empty string is not sent, and null is refused. */
    public void string(int tag, @Nullable String v) {
        if (v == null) {
            throw nullValue(tag, "a string");
        }
        if (!v.isEmpty()) {
            tag(tag);
            rawString(v);
        }
    }

    /** Writes the bytes as they are, with their number before them. An empty array is not sent, and null is refused. */
    public void bytes(int tag, byte @Nullable [] v) {
        if (v == null) {
            throw nullValue(tag, "a byte array");
        }
        if (v.length > 0) {
            tag(tag);
            rawBytes(v);
        }
    }

    /** Writes sixteen bytes with their length before them; null is not sent. */
    public void uuid(int tag, @Nullable UUID v) {
        if (v != null) {
            tag(tag);
            rawUuid(v);
        }
    }

    /** Writes the number in two's complement with its length before it; null is not sent. */
    public void bigInteger(int tag, @Nullable BigInteger v) {
        if (v != null) {
            tag(tag);
            rawBigInteger(v);
        }
    }

    /** Writes an {@code rpcx.Decimal}; null is not sent. */
    public void decimal(int tag, @Nullable BigDecimal v) {
        if (v != null) {
            tag(tag);
            rawDecimal(v);
        }
    }

    /** Writes a {@code google.protobuf.Timestamp}; null is not sent. */
    public void instant(int tag, @Nullable Instant v) {
        if (v != null) {
            tag(tag);
            rawInstant(v);
        }
    }

    /** Writes a {@code google.protobuf.Duration}; null is not sent. */
    public void duration(int tag, @Nullable Duration v) {
        if (v != null) {
            tag(tag);
            rawDuration(v);
        }
    }

    /** Writes an {@code rpcx.LocalDate}; null is not sent. */
    public void localDate(int tag, @Nullable LocalDate v) {
        if (v != null) {
            tag(tag);
            rawLocalDate(v);
        }
    }

    /** Writes an {@code rpcx.LocalDateTime}; null is not sent. */
    public void localDateTime(int tag, @Nullable LocalDateTime v) {
        if (v != null) {
            tag(tag);
            rawLocalDateTime(v);
        }
    }
}
