package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Protobuf's wire format, read. Public only because generated codecs call it. Not thread-safe: one belongs to one
 * message at a time.
 *
 * <p>Every length is held against what is left of the message around it before anything is made. Longer than 400 lines
 * because every scalar has its reader here, where the just-in-time compiler sees plain final methods.
 */
public final class In extends Pool.Scratch {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle LONG_BIG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN)
            .withInvokeExactBehavior();

    /** What objects may take whatever the message's size, so that a small message of sparse records is read. */
    private static final long MIN_MEMORY = 1 << 20;

    /**
     * Bytes of keys, in the message or in memory, compared with keys of the same hash: some 100 ms for the largest
     * message, and far beyond what honest keys need.
     */
    private static final long MIN_COMPARED = 8 << 20;

    private static final long MAX_COMPARED_PER_BYTE = 32;

    /** What one step of looking up an element of a set costs, beside its bytes, as comparisons are counted. */
    private static final long LOOKUP_BYTES = 16;

    /**
     * Divides the square of a decimal's bytes. Ordering one of 1,700 costs as much as comparing 45,000 bytes, and a
     * table of the JDK orders what has one hash again each time that it grows and another hash leaves its place: from
     * some thousands of keys to half a million that is seven times.
     */
    private static final int SQUARE_BYTES = 8;

    /** A message takes so much without a question, unless its memory says otherwise. */
    static final int FREE_BYTES = 16 << 10;

    /** The first question is for so much more than what is needed at once, each further one for twice that. */
    private static final int FIRST_ASKED_BYTES = 4 << 10;

    private static final int MOST_ASKED_BYTES = 64 << 10;

    /** What no bytes stand for: two bytes of a message shall not become an object of seventy. */
    private static final LocalDateTime EPOCH = LocalDateTime.ofEpochSecond(0, 0, ZoneOffset.UTC);

    private static final int KEPT_BYTES = 256 << 10;

    /** What an element counts for when keys are compared: it may have one byte in the message, and is an object. */
    private static final int ELEMENT_BYTES = 8;

    private static final Pool<In> POOL = new Pool<>(In::new);
    static final byte[] NONE = {};
    private static final byte[] LENGTH_OF_NOTHING = {0};

    private byte[] own = new byte[512];
    private byte[] buf = none();
    private int pos;
    private int end;
    private int depth;
    private int elements;
    private int room;
    private long memory;
    private long comparisons;

    /** What looking up elements of sets and maps within keys would cost, each once, and ordering long decimals. */
    private long lookups;

    // of the key that is being read, as KeyHashes has them
    private float compared;
    private float lookedUp;

    /** What of {@link #memory} sets and maps have taken, and not messages. */
    private long collections;

    /** Keys of sets and maps, one within the other, that are being read. */
    private int keys;

    /** What may still be taken before {@link #owner} is asked. */
    private long granted;

    /** For so much more than what is needed the owner is asked next. */
    private int spare;

    /** Null where nobody counts. */
    private @Nullable Memory owner;

    private Limits limits = Limits.STANDARD;

    /** What reads now; null while no message is read. */
    private @Nullable Codecs codecs;

    /**
     * The {@link MessageCodec#number} of the message that is being read. It changes twice for each one within another,
     * and G1 has a fence behind each store of a reference, but not behind that of a number.
     */
    private int current;

    private In() {}

    /** @param owner null where nobody counts what is read */
    static Object read(Codecs codecs, MessageCodec codec, ByteBuf from, @Nullable Memory owner) {
        Limits limits = codecs.limits();
        int length = from.readableBytes();
        if (length > limits.messageBytes()) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    codec.type().protoName() + ": " + length + " bytes (limit of a message: " + limits.messageBytes()
                            + ")");
        }
        In in = POOL.take();
        try {
            in.codecs = codecs;
            in.current = codec.number;
            in.open(from, length, limits, owner);
            Object value = codec.read(in);
            if (owner != null) {
                owner.isRead(in.granted);
            }
            return value;
        } catch (CodecException e) {
            throw e;
        } catch (Throwable e) {
            // a constructor that checks its arguments, or anything else that is not ours
            throw CodecException.ofTheirs(in.name() + " refused what was read: ", e);
        } finally {
            in.reset();
            POOL.give(in);
            from.readerIndex(from.writerIndex());
        }
    }

    private void open(ByteBuf from, int length, Limits within, @Nullable Memory asked) {
        owner = asked;
        granted = asked == null ? FREE_BYTES : asked.unasked();
        spare = FIRST_ASKED_BYTES;
        take(length);
        if (limits != within) {
            limits = within;
        }
        elements = within.elements();
        room = length >> 2;
        memory = MIN_MEMORY + (long) within.growth() * length;
        collections = 0;
        comparisons = MIN_COMPARED + MAX_COMPARED_PER_BYTE * length;
        lookups = 0;
        meetings(1, 1);
        depth = 1;
        if (from.hasArray()) {
            buf = from.array();
            pos = from.arrayOffset() + from.readerIndex();
        } else {
            if (own.length < length) {
                own = new byte[length];
            }
            buf = own;
            pos = 0;
            from.getBytes(from.readerIndex(), buf, 0, length);
        }
        end = pos + length;
    }

    private void reset() {
        buf = none();
        codecs = null;
        owner = null;
        keys = 0;
        pos = 0;
        end = 0;
        if (own.length > KEPT_BYTES) {
            own = new byte[512];
        }
    }

    /** Stands where there is no array. It is not {@code NONE}, since a store of null needs no fence. */
    @SuppressWarnings("NullAway") // nothing is read then
    static byte[] none() {
        return null;
    }

    private @Nullable MessageCodec current() {
        Codecs reading = codecs;
        return reading == null ? null : reading.numbered(current);
    }

    private String name() {
        MessageCodec codec = current();
        return codec == null ? "message" : codec.type().protoName();
    }

    CodecException malformed(String what) {
        return new CodecException(CodecException.Code.MALFORMED, name() + ": " + what);
    }

    CodecException refused(CodecException.Code code, String what) {
        return new CodecException(code, name() + ": " + what);
    }

    /** The next field's number and wire type; 0 at the message's end. */
    public int tag() {
        if (pos >= end) {
            return 0;
        }
        int b = buf[pos];
        if (b > 7) {
            pos++;
            return b;
        }
        long tag = varint();
        if (tag >>> 32 != 0 || (int) tag >>> 3 == 0) {
            throw malformed("a tag of " + Long.toUnsignedString(tag) + " (expected: a field's number and wire type)");
        }
        return (int) tag;
    }

    /**
     * Passes over this tag if it is what comes next. Other writers may write a tag in more bytes than it takes:
     * {@link #tag} reads those, and tags of more than two bytes.
     */
    public boolean next(int tag) {
        int p = pos;
        if (tag >>> 7 == 0) {
            if (p < end && buf[p] == tag) {
                pos = p + 1;
                return true;
            }
        } else if (p + 1 < end && buf[p] == (byte) (tag | 0x80) && buf[p + 1] == tag >>> 7) {
            pos = p + 2;
            return true;
        }
        return false;
    }

    /** Whether all of the message has been read. */
    public boolean atEnd() {
        return pos >= end;
    }

    /** Bytes of the message that is being read. */
    int bytesLeft() {
        return end - pos;
    }

    private long varint() {
        if (pos >= end) {
            throw malformed("ends where a number was expected");
        }
        byte b = buf[pos];
        if (b >= 0) {
            pos++;
            return b;
        }
        return longVarint();
    }

    private long longVarint() {
        int p = pos;
        byte[] b = buf;
        if (b.length - p >= 8) {
            // up to eight bytes in one load, which may reach beyond the message's end but not beyond the array's
            long eight = (long) LONG.get(b, p);
            long lasts = ~eight & 0x80808080_80808080L;
            int bytes = (Long.numberOfTrailingZeros(lasts) >>> 3) + 1;
            if (lasts != 0 && bytes <= end - p) {
                pos = p + bytes;
                return gathered(eight & (lasts ^ lasts - 1));
            }
        }
        long result = 0;
        int last = Math.min(end, p + 10);
        for (int shift = 0; p < last; shift += 7) {
            byte each = b[p++];
            result |= (long) (each & 0x7F) << shift;
            if (each >= 0) {
                pos = p;
                return result;
            }
        }
        throw malformed(last == end ? "ends in the middle of a number" : "a number of more than ten bytes");
    }

    /** The low seven bits of eight bytes: pairs move together, then fours, then all. */
    private static long gathered(long bytes) {
        long pairs = bytes & 0x007F007F_007F007FL | (bytes & 0x7F007F00_7F007F00L) >>> 1;
        long fours = pairs & 0x00003FFF_00003FFFL | (pairs & 0x3FFF0000_3FFF0000L) >>> 2;
        return fours & 0xFFFFFFFL | (fours & 0x0FFFFFFF_00000000L) >>> 4;
    }

    private int length() {
        long length = varint();
        if (length < 0 || length > end - pos) {
            throw malformed("a length of " + length + ", while " + (end - pos) + " bytes are left");
        }
        return (int) length;
    }

    private void fixed(int bytes) {
        if (end - pos < bytes) {
            throw malformed("ends in the middle of " + bytes + " bytes");
        }
    }

    /**
     * A field that this version does not know: passed over. A number that it does know, with another wire type, is
     * refused.
     *
     * <p>Groups, which Protobuf has given up, are passed over as well.
     */
    public void skip(int tag) {
        MessageCodec codec = current();
        if (codec != null && codec.knows(tag >>> 3)) {
            throw new CodecException(
                    CodecException.Code.MALFORMED,
                    codec.describe(tag >>> 3) + ": wire type " + (tag & 7) + " does not fit it");
        }
        skipValue(tag);
    }

    private void skipValue(int tag) {
        switch (tag & 7) {
            case 0 -> varint();
            case 1 -> {
                fixed(8);
                pos += 8;
            }
            case 2 -> {
                int length = length();
                pos += length;
            }
            case 3 -> {
                enter();
                int inner = tag();
                while (inner != (tag & ~7 | 4)) {
                    if (inner == 0) {
                        throw malformed("ends inside a group");
                    }
                    skipValue(inner);
                    inner = tag();
                }
                depth--;
            }
            case 5 -> {
                fixed(4);
                pos += 4;
            }
            default -> throw malformed("wire type " + (tag & 7) + " of field " + (tag >>> 3));
        }
    }

    private void enter() {
        if (++depth > limits.depth()) {
            throw new CodecException(
                    CodecException.Code.TOO_DEEP,
                    name() + ": more than " + limits.depth()
                            + " messages inside each other, entries of maps among them");
        }
    }

    /** Counts one element of a list, set or map. @param bytes that it takes there, beside those of a message */
    void element(int bytes) {
        granted -= bytes;
        elements--;
        // one branch for both: this is on the way of each element
        if ((granted | elements) < 0) {
            elementBeyond();
        }
    }

    private void elementBeyond() {
        take(0);
        if (elements < 0) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    name() + ": more than " + limits.elements()
                            + " elements in lists, sets and maps (limit of a message)");
        }
    }

    /** Counts the memory of an object that takes far fewer bytes in the message. */
    private void memory(int bytes) {
        granted -= bytes;
        memory -= bytes;
        if ((granted | memory) < 0) {
            memoryBeyond();
        }
    }

    /** Counts the memory of a set or map without its elements. */
    void collection(int bytes) {
        collections += bytes;
        memory(bytes);
    }

    private void memoryBeyond() {
        take(0);
        if (memory < 0) {
            throw refused(
                    CodecException.Code.TOO_LARGE,
                    "its objects take more memory than " + MIN_MEMORY + " bytes and " + limits.growth()
                            + " for each of the message");
        }
    }

    /** Asks for memory of objects. Most questions are answered here. */
    public void take(int bytes) {
        granted -= bytes;
        if (granted < 0) {
            ask();
        }
    }

    /** Counts what an array takes of the heap beside the bytes of its elements, which are counted elsewhere. */
    void array(long bytes) {
        // most arrays take nothing beside, and are read by the million
        if (bytes > HeapArray.ALWAYS_EXACT_BYTES) {
            take((int) (HeapArray.taken(bytes) - bytes));
        }
    }

    private void ask() {
        long more = spare - granted;
        Memory asked = owner;
        if (asked != null && !asked.take(more)) {
            throw refused(CodecException.Code.NO_MEMORY, "no memory is left for its objects");
        }
        granted += more;
        spare = Math.min(MOST_ASKED_BYTES, 2 * spare);
    }

    /**
     * How many elements a list may have room for before any is read: no more than the bytes that are left can hold at
     * four a place, and all lists of a message together as much as the message takes itself, since lists within lists
     * are open at the same time.
     */
    int room(int wanted) {
        int granted = Math.min(Math.min(wanted, room), bytesLeft() >> 2);
        room -= granted;
        return granted;
    }

    int position() {
        return pos;
    }

    /**
     * Memory of the messages that have been read, without what their references lead to, and some of each element, from
     * some number on: what a key adds to it is what the key is made of. It is not counted by itself, as that would be
     * one number more for each message.
     */
    long made() {
        return -memory - collections - ELEMENT_BYTES * (long) elements;
    }

    /** A key of a set or map begins: to be given to {@link #endKey}. */
    long beginKey() {
        keys++;
        return lookups;
    }

    /** What looking up each element of the key's sets and maps would cost, and ordering its decimals. */
    long endKey(long begin) {
        keys--;
        return lookups - begin;
    }

    /** With how many values of the key that is being read one of another key may be compared, by what is read of it. */
    float compared() {
        return compared;
    }

    /** How often a value of another key may be looked up in the one that is being read, by what is read of it. */
    float lookedUp() {
        return lookedUp;
    }

    /** Goes on with these, when a key begins or ends. */
    void meetings(float ofComparing, float ofLookingUp) {
        compared = ofComparing;
        lookedUp = ofLookingUp;
    }

    /**
     * An element comes to a set or map, with so many others, that finds it by its hash or its order. It costs nothing
     * yet, but where the set is part of a key, comparing that key looks up each of its elements.
     */
    void ordered(int others) {
        if (keys > 0) {
            lookups += LOOKUP_BYTES * (Integer.SIZE - Integer.numberOfLeadingZeros(others + 1));
        }
    }

    /** Whether what is read now is part of a key of a set or map. */
    boolean isWithinKey() {
        return keys > 0;
    }

    /** Counts what comparing a key with others of its hash costs. A number without end is the greatest there is. */
    void comparisons(double cost) {
        spend((long) cost);
    }

    /**
     * Counts the hash of a key of so many bytes that contains sets or maps: each makes it anew, and so does each lookup
     * where that set or map is part of a key.
     */
    void hashed(long bytes) {
        lookups += bytes;
        spend(bytes);
    }

    private void spend(long cost) {
        comparisons -= cost;
        if (comparisons < 0) {
            throw refused(
                    CodecException.Code.TOO_LARGE,
                    "too many elements of sets or keys of maps have the same hash, or sets are too deep within sets");
        }
    }

    /** A varint; anything but 0 is true. */
    public boolean bool() {
        return varint() != 0;
    }

    /** A varint; out of an int's range is refused. */
    public int int32() {
        long v = varint();
        if (v != (int) v) {
            throw malformed(v + " for an int (expected: -2147483648 to 2147483647)");
        }
        return (int) v;
    }

    /** A varint; out of a byte's range is refused. */
    public byte int8() {
        int v = int32();
        if (v != (byte) v) {
            throw malformed(v + " for a byte (expected: -128 to 127)");
        }
        return (byte) v;
    }

    /** A varint; out of a short's range is refused. */
    public short int16() {
        int v = int32();
        if (v != (short) v) {
            throw malformed(v + " for a short (expected: -32768 to 32767)");
        }
        return (short) v;
    }

    /** A varint; out of a char's range is refused. */
    public char char16() {
        int v = int32();
        if (v != (char) v) {
            throw malformed(v + " for a char (expected: 0 to 65535)");
        }
        return (char) v;
    }

    /** A varint. */
    public long int64() {
        return varint();
    }

    /** Four bytes. */
    public float float32() {
        fixed(4);
        float v = Float.intBitsToFloat((int) INT.get(buf, pos));
        pos += 4;
        return v;
    }

    /** Eight bytes. */
    public double float64() {
        fixed(8);
        double v = Double.longBitsToDouble((long) LONG.get(buf, pos));
        pos += 8;
        return v;
    }

    /** A length and UTF-8; anything that is none is refused. */
    public String string() {
        int length = length();
        int start = pos;
        pos = start + length;
        array(length);
        String s = new String(buf, start, length, StandardCharsets.UTF_8);
        int chars = s.length();
        if (chars != length) {
            // not ASCII, so it may have two bytes for each character: known only now, after one text too many at most
            take(2 * chars);
            array(2L * chars);
        }
        // the JDK puts this character where bytes are no UTF-8; a string of one byte a character cannot hold it and
        // answers at once
        if (s.indexOf('\uFFFD') >= 0) {
            checkUtf8(start, length);
        }
        return s;
    }

    private void checkUtf8(int start, int length) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(buf, start, length));
        } catch (CharacterCodingException e) {
            throw malformed("a string that is not UTF-8");
        }
    }

    /** A length and so many bytes. */
    public byte[] bytes() {
        int length = length();
        pos += length;
        array(length);
        return Arrays.copyOfRange(buf, pos - length, pos);
    }

    /** Sixteen bytes and no other number of them. */
    public UUID uuid() {
        int length = length();
        if (length != 16) {
            throw malformed(length + " bytes for a UUID (expected: 16)");
        }
        pos += 16;
        return new UUID((long) LONG_BIG.get(buf, pos - 16), (long) LONG_BIG.get(buf, pos - 8));
    }

    /** Null for no bytes at all, which is how Protobuf writes bytes that were never set. */
    public @Nullable BigInteger bigInteger() {
        int length = length();
        checkDigits(length);
        pos += length;
        if (length == 0) {
            return null;
        }
        return length <= 8
                ? BigInteger.valueOf(twosComplement(pos - length, length))
                : new BigInteger(buf, pos - length, length);
    }

    private void checkDigits(int bytes) {
        if (bytes > limits.digits() * 3.33 / 8 + 1) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    "in " + name() + ": a number of more than " + limits.digits() + " digits");
        }
    }

    private long twosComplement(int at, int length) {
        byte[] b = buf;
        if (b.length - at >= 8) {
            return (long) LONG_BIG.get(b, at) >> 64 - 8 * length;
        }
        long v = b[at];
        for (int i = 1; i < length; i++) {
            v = v << 8 | b[at + i] & 0xFF;
        }
        return v;
    }

    /** {@code rpcx.Decimal}; digits and scale beyond the limits are refused. */
    public BigDecimal decimal() {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        int at = 0;
        int bytes = 0;
        int scale = 0;
        // as everybody writes it, then as anybody may
        if (next(1 << 3 | 2)) {
            bytes = length();
            at = pos;
            pos += bytes;
        }
        if (next(2 << 3)) {
            scale = sint32();
        }
        for (int tag; (tag = tag()) != 0; ) {
            switch (tag) {
                case 1 << 3 | 2 -> {
                    bytes = length();
                    at = pos;
                    pos += bytes;
                }
                case 2 << 3 -> scale = sint32();
                default -> skipUnknown(tag, 2, "a Decimal");
            }
        }
        end = outerEnd;
        checkDigits(bytes);
        if (scale > limits.scale() || scale < -limits.scale()) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    "in " + name() + ": a decimal of scale " + scale + " (limit: " + limits.scale() + " either way)");
        }
        if (bytes <= 8) {
            return BigDecimal.valueOf(bytes == 0 ? 0 : twosComplement(at, bytes), scale);
        }
        take(ElementCodec.BIG_INTEGER_BYTES);
        lookups += (long) bytes * bytes / SQUARE_BYTES;
        return new BigDecimal(new BigInteger(buf, at, bytes), scale);
    }

    private int sint32() {
        long v = varint();
        if (v >>> 32 != 0) {
            throw malformed(Long.toUnsignedString(v) + " for a zigzag of 32 bits");
        }
        return (int) v >>> 1 ^ -((int) v & 1);
    }

    private void skipUnknown(int tag, int known, String what) {
        if (tag >>> 3 <= known) {
            throw malformed("wire type " + (tag & 7) + " for field " + (tag >>> 3) + " of " + what);
        }
        skipValue(tag);
    }

    /** What bytes that were never set are read as. */
    public static byte[] noBytes() {
        return NONE;
    }

    void skipOfEntry(int tag, String field) {
        skipUnknown(tag, 2, "an entry of " + field);
    }

    /** Both fields of a moment; the second is left in {@link #nanos}. */
    private long time(String what) {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        long seconds = 0;
        int n = 0;
        if (next(1 << 3)) {
            seconds = varint();
        }
        if (next(2 << 3)) {
            n = int32();
        }
        for (int tag; (tag = tag()) != 0; ) {
            switch (tag) {
                case 1 << 3 -> seconds = varint();
                case 2 << 3 -> n = int32();
                default -> skipUnknown(tag, 2, "a " + what);
            }
        }
        end = outerEnd;
        nanos = n;
        return seconds;
    }

    private int nanos;

    /** {@code google.protobuf.Timestamp}. */
    public Instant instant() {
        long seconds = time("Timestamp");
        checkNanos(nanos >= 0);
        try {
            return Instant.ofEpochSecond(seconds, nanos);
        } catch (DateTimeException e) {
            throw malformed(seconds + " s for an instant (expected: within a thousand million years)");
        }
    }

    /** {@code google.protobuf.Duration}. */
    public Duration duration() {
        long seconds = time("Duration");
        checkNanos(nanos > -1_000_000_000 && (nanos == 0 || seconds == 0 || seconds > 0 == nanos > 0));
        try {
            return Duration.ofSeconds(seconds, nanos);
        } catch (ArithmeticException e) {
            throw malformed(seconds + " s and " + nanos + " ns for a duration");
        }
    }

    /** {@code rpcx.LocalDateTime}. */
    public LocalDateTime localDateTime() {
        long seconds = time("LocalDateTime");
        checkNanos(nanos >= 0);
        if (seconds == 0 && nanos == 0) {
            return EPOCH;
        }
        try {
            return LocalDateTime.ofEpochSecond(seconds, nanos, ZoneOffset.UTC);
        } catch (DateTimeException e) {
            throw malformed(seconds + " s for a date and time (expected: within a thousand million years)");
        }
    }

    private void checkNanos(boolean sign) {
        if (!sign || nanos > 999_999_999) {
            throw malformed(nanos + " ns (expected: below a second, and with the sign of the seconds)");
        }
    }

    /** {@code rpcx.LocalDate}. */
    public LocalDate localDate() {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        long days = 0;
        for (int tag; (tag = tag()) != 0; ) {
            if (tag == 1 << 3) {
                long zigzag = varint();
                days = zigzag >>> 1 ^ -(zigzag & 1);
            } else {
                skipUnknown(tag, 1, "a LocalDate");
            }
        }
        end = outerEnd;
        if (days == 0) {
            return LocalDate.EPOCH;
        }
        try {
            return LocalDate.ofEpochDay(days);
        } catch (DateTimeException e) {
            throw malformed(days + " days for a date (expected: within a thousand million years)");
        }
    }

    Object message(MessageCodec codec) {
        int length = length();
        int outerEnd = end;
        int outer = current;
        end = pos + length;
        current = codec.number;
        int bytes = codec.shallowBytes;
        memory(bytes);
        enter();
        Object v = codec.read(this);
        depth--;
        current = outer;
        end = outerEnd;
        return v;
    }

    /** What is read of a message without any bytes, which is what Protobuf has where one is absent. */
    @Nullable
    Object ofNothing(ElementCodec message) {
        byte[] outer = buf;
        int outerPos = pos;
        int outerEnd = end;
        buf = LENGTH_OF_NOTHING;
        pos = 0;
        end = LENGTH_OF_NOTHING.length;
        Object v = message.read(this);
        buf = outer;
        pos = outerPos;
        end = outerEnd;
        return v;
    }

    /** Narrows to a packed run; {@link #endRun} takes what this gives. */
    int beginRun() {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        return outerEnd;
    }

    void endRun(int outerEnd) {
        end = outerEnd;
    }

    /** Narrows to a map's entry, which is a message inside another; {@link #endEntry} takes what this gives. */
    int beginEntry() {
        enter();
        return beginRun();
    }

    void endEntry(int outerEnd) {
        endRun(outerEnd);
        depth--;
    }
}
