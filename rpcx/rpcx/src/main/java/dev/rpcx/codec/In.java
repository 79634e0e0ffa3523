package dev.rpcx.codec;

import io.netty.buffer.ByteBuf;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Date;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Reads Protobuf's wire format. Public only because generated codecs call it. Not thread-safe: an object reads one
 * message at a time.
 *
 * <p>Every length is checked against the remaining bytes of the enclosing message before anything is allocated for that
 * length. All scalars are read by plain final methods of this one class, since the just-in-time compiler can inline
 * such calls.
 */
public final class In extends Pool.Scratch {
    // The next three handles need only plain reads: no other thread changes the bytes of a message that is being read.
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
            .withInvokeExactBehavior();
    private static final VarHandle LONG_BIG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN)
            .withInvokeExactBehavior();

    /**
     * Memory in bytes that the limit {@link Limits#memoryPerByte} always allows for the messages, sets and maps in a
     * message, however short the message is. A short message may become large records, because a record takes memory
     * for all its components, even for those that were not sent.
     */
    private static final long MIN_MEMORY = 1 << 20;

    /**
     * Part of the maximum cost of a message that does not depend on the size of the message. The other part is
     * {@link #MAX_COMPARED_PER_BYTE} for each byte of the message. The cost is the work of comparing set elements and
     * map keys that have the same hash, and of computing the hashes of elements and keys that contain sets or maps. The
     * unit is the comparison of one byte. For example, the maximum of a message of 1 MiB is 8 Mi + 32 Mi = 40 Mi. A
     * message of 4 MiB, the largest by default, can keep a processor busy for some 100 ms before it reaches its
     * maximum. Honest messages need far less.
     */
    private static final long MIN_COMPARED = 8 << 20;

    private static final long MAX_COMPARED_PER_BYTE = 32;

    /**
     * Cost of one step of the search for an element in a set or map. The unit is the comparison of one byte. The cost
     * of comparing the element itself is counted in addition.
     */
    private static final long LOOKUP_BYTES = 16;

    /**
     * Divisor in the cost of comparing a decimal of more than eight bytes in a hash table. The cost of a decimal of n
     * bytes is n² / 8. The unit is the comparison of one byte.
     *
     * <p>For example, the cost of a decimal of 1,700 bytes is about 360,000. The time of a comparison grows with the
     * square of the decimal's length, so one comparison of such a decimal takes as long as comparing 45,000 single
     * bytes. A hash table may compare the decimal eight times: once when the decimal is added, and seven times while
     * the table grows from some thousands of keys to half a million. Therefore the cost is eight times 45,000, which is
     * 360,000.
     */
    private static final int SQUARE_DIVISOR = 8;

    /**
     * Number of bytes that a message may take without asking for memory, unless the message's {@link Memory} gives
     * another number.
     */
    static final int FREE_BYTES = 16 << 10;

    /**
     * Number of extra bytes in the first request to {@link Memory}, beyond the bytes that are missing. The next objects
     * take the extra bytes, so that they need no request. The extra bytes double with each request, up to
     * {@link #MAX_ASKED_BYTES}: 4 KiB, 8 KiB, and so on.
     */
    private static final int FIRST_ASKED_BYTES = 4 << 10;

    private static final int MAX_ASKED_BYTES = 64 << 10;

    /**
     * Value of an {@code rpcx.LocalDateTime} without content. All such date-times share this object, since otherwise
     * two bytes of a message would become an object of seventy bytes.
     */
    private static final LocalDateTime EPOCH = LocalDateTime.ofEpochSecond(0, 0, ZoneOffset.UTC);

    /** The JDK keeps the objects of offsets that are a multiple of this, in seconds: a quarter of an hour. */
    private static final int KEPT_OFFSET_SECONDS = 900;

    /** Memory in bytes of an offset that the JDK does not keep, with the string of its id. */
    private static final int OFFSET_BYTES = 80;

    private static final int MAX_KEPT_BYTES = 256 << 10;

    /**
     * Number of bytes by which each element of a list, set or map in a key increases the size of the key that
     * {@link #madeBytes} measures. An element may have only one byte in the message, but the JDK compares it as an
     * object, which costs more than comparing one byte.
     */
    private static final int ELEMENT_BYTES = 8;

    private static final Pool<In> POOL = new Pool<>(In::new);
    static final byte[] NO_BYTES = {};
    private static final byte[] LENGTH_OF_NOTHING = {0};

    private byte[] own = new byte[512];
    private byte[] buf = noArray();
    private int pos;
    private int end;
    private int depth;
    private int elementsLeft;
    private int roomLeft;
    private long memoryLeft;
    private long comparisonsLeft;

    /**
     * Sum of three kinds of costs of the part of the message that has been read. The unit is the comparison of one
     * byte. Only differences of this sum are used: see {@link #beginKey} and {@link #endKey}. The costs are:
     *
     * <ul>
     *   <li>One lookup of each element of the sets and maps that are part of a key. Only elements for which
     *       {@link ElementCodec#hasOrder} is true are included. For other elements, {@link KeyHashes} counts the
     *       comparisons.
     *   <li>The computation of the hashes of keys that contain sets or maps.
     *   <li>The comparisons of the decimals that have more than eight bytes.
     * </ul>
     */
    private long lookupCost;

    /**
     * Maximum number of times that the JDK compares one value of another key with values in the key that is being read,
     * when it compares the two keys. {@link KeyHashes} explains this number under the same name.
     */
    private float compared;
    /**
     * Maximum number of times that the JDK looks up one value of another key in the key that is being read, when it
     * compares the two keys. {@link KeyHashes} explains this number under the same name.
     */
    private float lookedUp;

    /**
     * Memory in bytes of all sets and maps read so far, without their elements. Used to distinguish this memory from
     * the memory of messages, since {@link #memoryLeft} is reduced by both.
     */
    private long collections;

    /**
     * Number of keys of sets and maps that are being read now; more than 1 if one such key is part of another. Only
     * keys for which {@code costsBoth} of {@link KeyHashes.Keys} is true are counted: keys that hold sets or maps, and
     * keys whose comparison may call {@code compareTo} of decimals.
     */
    private int openKeys;

    /** Number of bytes that new objects may take before {@link #owner} is asked for more memory. */
    private long granted;

    /**
     * Number of bytes that the next request to {@link #owner} asks for in addition to the missing bytes. For example,
     * if 100 bytes are missing and this number is 4096, the request asks for 4196 bytes.
     */
    private int askedBeyondBytes;

    /** Grants the memory that the objects of the message take; null if nobody counts that memory. */
    private @Nullable Memory owner;

    private Limits limits = Limits.STANDARD;

    /** All codecs that the message being read may need; null while no message is read. */
    private @Nullable Codecs codecs;

    /**
     * The {@link MessageCodec#number} of the codec of the innermost message being read. A reference to the codec would
     * be slower: this field changes twice for each nested message, and the G1 collector needs a memory fence to store a
     * reference.
     */
    private int currentNumber;

    private In() {}

    /**
     * Reads the message between the reader index and the writer index of {@code from}.
     *
     * @param owner grants the memory for the message; null if nobody counts the memory
     */
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
            in.currentNumber = codec.number;
            in.open(from, length, limits, owner);
            Object value = codec.read(in);
            if (owner != null) {
                owner.onRead(in.granted);
            }
            return value;
        } catch (CodecException e) {
            throw e;
        } catch (Throwable e) {
            // the exception usually comes from code outside this package, for example a constructor that checks its
            // arguments
            throw CodecException.ofForeign(in.name() + " refused what was read: ", e);
        } finally {
            in.reset();
            POOL.give(in);
            from.readerIndex(from.writerIndex());
        }
    }

    private void open(ByteBuf from, int length, Limits within, @Nullable Memory asked) {
        owner = asked;
        granted = asked == null ? FREE_BYTES : asked.freeBytes();
        askedBeyondBytes = FIRST_ASKED_BYTES;
        take(length);
        if (limits != within) {
            limits = within;
        }
        elementsLeft = within.elements();
        roomLeft = length >> 2;
        memoryLeft = MIN_MEMORY + (long) within.memoryPerByte() * length;
        collections = 0;
        comparisonsLeft = MIN_COMPARED + MAX_COMPARED_PER_BYTE * length;
        lookupCost = 0;
        setComparisons(1, 1);
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
        buf = noArray();
        codecs = null;
        owner = null;
        openKeys = 0;
        pos = 0;
        end = 0;
        if (own.length > MAX_KEPT_BYTES) {
            own = new byte[512];
        }
    }

    /**
     * Returns null. The fields {@code buf} of {@code In} and {@link Out} are null while no message is read or written.
     * Do not set them to the empty array {@code NO_BYTES} instead: G1 may need a memory fence to store a reference to
     * an object, but never to store null.
     */
    @SuppressWarnings("NullAway") // nothing is read while there is no array
    static byte[] noArray() {
        return null;
    }

    private @Nullable MessageCodec current() {
        Codecs reading = codecs;
        return reading == null ? null : reading.numbered(currentNumber);
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

    /** Reads the tag of the next field, which is its number and wire type. Returns 0 at the end of the message. */
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
     * Skips the next tag if that tag equals {@code tag}; returns whether it was skipped. Recognises only tags of one or
     * two bytes, in their shortest form. The caller reads all other tags with {@link #tag}.
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

    /** Returns whether the current message, packed run or map entry has been read to its end. */
    public boolean atEnd() {
        return pos >= end;
    }

    /** Returns the number of remaining bytes of the message that is being read. */
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
            // One load reads eight bytes. Some of them may be beyond the end of the message, but none is beyond the end
            // of the array.
            long eight = (long) LONG.get(b, p);
            long lasts = ~eight & 0x80808080_80808080L;
            int bytes = (Long.numberOfTrailingZeros(lasts) >>> 3) + 1;
            if (lasts != 0 && bytes <= end - p) {
                pos = p + bytes;
                return joined(eight & (lasts ^ lasts - 1));
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

    /**
     * Joins the low seven bits of each of the eight bytes to one number, which is the value of a varint. The first step
     * joins pairs of bytes, the second joins pairs of pairs, and the third joins the two halves.
     */
    private static long joined(long bytes) {
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
     * Skips a field that this version of the message type does not have. Groups are skipped too, though Protobuf has
     * deprecated them. A field that this version has, but with another wire type, is refused as {@code MALFORMED}.
     */
    public void skip(int tag) {
        MessageCodec codec = current();
        if (codec != null && codec.knows(tag >>> 3)) {
            throw new CodecException(
                    CodecException.Code.MALFORMED,
                    codec.fieldName(tag >>> 3) + ": wire type " + (tag & 7) + " does not fit it");
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

    /**
     * Counts one element of a list, set or map.
     *
     * @param bytes memory in bytes that the element takes in addition to its bytes in the message. The element's place
     *     in the collection is included. The memory of an element that is a message is not included, because it is
     *     counted when that message is read.
     */
    void element(int bytes) {
        granted -= bytes;
        elementsLeft--;
        // one comparison checks both limits, to save time, because this code runs for each element
        if ((granted | elementsLeft) < 0) {
            elementBeyond();
        }
    }

    private void elementBeyond() {
        take(0);
        if (elementsLeft < 0) {
            throw new CodecException(
                    CodecException.Code.TOO_LARGE,
                    name() + ": more than " + limits.elements()
                            + " elements in lists, sets and maps (limit of a message)");
        }
    }

    /**
     * Counts the memory of a message, set or map against the granted memory, and against the limit
     * {@link Limits#memoryPerByte}. Such an object may take far more memory than it has bytes in the message.
     *
     * @param bytes memory in bytes of the object, without its elements or the objects to which it refers
     */
    private void memory(int bytes) {
        granted -= bytes;
        memoryLeft -= bytes;
        if ((granted | memoryLeft) < 0) {
            memoryBeyond();
        }
    }

    /** Counts the memory, in bytes, of a set or map without its elements. */
    void collection(int bytes) {
        collections += bytes;
        memory(bytes);
    }

    private void memoryBeyond() {
        take(0);
        if (memoryLeft < 0) {
            throw refused(
                    CodecException.Code.TOO_LARGE,
                    "its objects take more memory than " + MIN_MEMORY + " bytes and " + limits.memoryPerByte()
                            + " for each byte of the message");
        }
    }

    /**
     * Takes memory for objects, and asks {@link Memory} for more if the granted bytes do not suffice.
     *
     * @param bytes number of bytes to take
     */
    public void take(int bytes) {
        granted -= bytes;
        if (granted < 0) {
            ask();
        }
    }

    /**
     * Counts the bytes of heap that a large array takes in addition to the bytes of its elements. Does nothing for an
     * array of at most {@link HeapArray#MAX_ALWAYS_EXACT_BYTES}. The elements of all arrays and the headers of small
     * arrays are counted elsewhere.
     *
     * @param bytes number of bytes of the elements
     */
    void array(long bytes) {
        // the condition saves time, since for most arrays nothing has to be counted here, and a message may have
        // millions of arrays
        if (bytes > HeapArray.MAX_ALWAYS_EXACT_BYTES) {
            take((int) (HeapArray.heapBytes(bytes) - bytes));
        }
    }

    private void ask() {
        long more = askedBeyondBytes - granted;
        Memory asked = owner;
        if (asked != null && !asked.take(more)) {
            throw refused(CodecException.Code.NO_MEMORY, "no memory is left for its objects");
        }
        granted += more;
        askedBeyondBytes = Math.min(MAX_ASKED_BYTES, 2 * askedBeyondBytes);
    }

    /**
     * Returns for how many elements a list may allocate room before it reads any of them. An element needs four bytes
     * of room, for a reference. The room of a list, in bytes, is at most the number of bytes that are left in the
     * list's message. The room of all lists together is at most the size of the outermost message; this second maximum
     * is needed because nested lists are read at the same time. The caller gives a list room for ten elements even if
     * the result is less.
     *
     * @param wanted number of elements for which the list would like to have room
     */
    int room(int wanted) {
        int granted = Math.min(Math.min(wanted, roomLeft), bytesLeft() >> 2);
        roomLeft -= granted;
        return granted;
    }

    int position() {
        return pos;
    }

    /**
     * Returns the current value of a counter by which {@link KeyHashes} measures the memory of a key in bytes. The
     * memory of a key is the value after the key has been read, minus the value before. The counter does not start at
     * 0, so a single value has no meaning. The counter increases in two cases:
     *
     * <ul>
     *   <li>A message adds its own memory, but not the memory of the objects to which it refers.
     *   <li>Each element of a collection adds {@code ELEMENT_BYTES}.
     * </ul>
     */
    long madeBytes() {
        return -memoryLeft - collections - ELEMENT_BYTES * (long) elementsLeft;
    }

    /**
     * Records that a key of a set or map begins. Returns the cost of lookups so far, which the caller has to pass to
     * {@link #endKey}.
     */
    long beginKey() {
        openKeys++;
        return lookupCost;
    }

    /**
     * Records that a key of a set or map has been read. Returns the part of {@link #lookupCost} that was added while
     * this key was read.
     *
     * @param begin result of {@code beginKey} for this key
     */
    long endKey(long begin) {
        openKeys--;
        return lookupCost - begin;
    }

    /**
     * Returns the maximum number of times that the JDK compares one value of another key with values in the key that is
     * being read, when it compares the two keys. {@link KeyHashes} explains this number under the same name. The number
     * grows while the key is read.
     */
    float compared() {
        return compared;
    }

    /**
     * Returns the maximum number of times that the JDK looks up one value of another key in the key that is being read,
     * when it compares the two keys. {@link KeyHashes} explains this number under the same name. The number grows while
     * the key is read.
     */
    float lookedUp() {
        return lookedUp;
    }

    /**
     * Sets the results of {@code compared()} and {@code lookedUp()}. {@code In} calls this method when it begins to
     * read the outermost message. {@link KeyHashes} calls this method before and after {@code In} reads a key that
     * {@link #openKeys} counts, and after {@code KeyHashes} has recorded the hash of any key.
     */
    void setComparisons(float ofComparing, float ofLookingUp) {
        compared = ofComparing;
        lookedUp = ofLookingUp;
    }

    /**
     * Counts the cost of looking up one element of a set or map. Does nothing if the set or map is not part of a key of
     * another set or map. If it is part of a key, each comparison of this key with another key looks up the element.
     * Called only for elements for which {@link ElementCodec#hasOrder} is true. For other elements, {@link KeyHashes}
     * counts the comparisons instead.
     *
     * @param others number of elements that the set or map has already
     */
    void countLookup(int others) {
        if (openKeys > 0) {
            lookupCost += LOOKUP_BYTES * (Integer.SIZE - Integer.numberOfLeadingZeros(others + 1));
        }
    }

    /** Returns whether the set or map that is being read is part of a key of another set or map. */
    boolean isWithinKey() {
        return openKeys > 0;
    }

    /**
     * Counts the cost of comparing a key with other keys that have the same hash.
     *
     * @param cost cost in units of the comparison of one byte; an infinite cost counts as {@code Long.MAX_VALUE}
     */
    void countComparisons(double cost) {
        spend((long) cost);
    }

    /**
     * Counts the cost of computing the hash of a key that contains sets or maps. Sets and maps do not store their
     * hashes, so the hash is computed from everything in the key.
     *
     * <p>The cost is also added to {@link #lookupCost}, because this key may be in a set or map that is part of an
     * outer key. Each comparison of the outer key looks up this key, and so computes the hash of this key again.
     *
     * @param bytes size of the key in bytes
     */
    void hashed(long bytes) {
        lookupCost += bytes;
        spend(bytes);
    }

    private void spend(long cost) {
        comparisonsLeft -= cost;
        if (comparisonsLeft < 0) {
            throw refused(
                    CodecException.Code.TOO_LARGE,
                    "too many elements of sets or keys of maps have the same hash, or sets are too deep within sets");
        }
    }

    /** Reads a boolean, which is a varint. 0 is false, and every other value is true. */
    public boolean bool() {
        return varint() != 0;
    }

    /** Reads a varint. A value outside the range of an int is refused as {@code MALFORMED}. */
    public int int32() {
        long v = varint();
        if (v != (int) v) {
            throw malformed(v + " for an int (expected: -2147483648 to 2147483647)");
        }
        return (int) v;
    }

    /** Reads a varint. A value outside the range of a byte is refused as {@code MALFORMED}. */
    public byte int8() {
        int v = int32();
        if (v != (byte) v) {
            throw malformed(v + " for a byte (expected: -128 to 127)");
        }
        return (byte) v;
    }

    /** Reads a varint. A value outside the range of a short is refused as {@code MALFORMED}. */
    public short int16() {
        int v = int32();
        if (v != (short) v) {
            throw malformed(v + " for a short (expected: -32768 to 32767)");
        }
        return (short) v;
    }

    /** Reads a varint. A value outside the range of a char is refused as {@code MALFORMED}. */
    public char char16() {
        int v = int32();
        if (v != (char) v) {
            throw malformed(v + " for a char (expected: 0 to 65535)");
        }
        return (char) v;
    }

    /** Reads a varint. */
    public long int64() {
        return varint();
    }

    /** Reads a float, which has four bytes. */
    public float float32() {
        fixed(4);
        float v = Float.intBitsToFloat((int) INT.get(buf, pos));
        pos += 4;
        return v;
    }

    /** Reads a double, which has eight bytes. */
    public double float64() {
        fixed(8);
        double v = Double.longBitsToDouble((long) LONG.get(buf, pos));
        pos += 8;
        return v;
    }

    /**
     * Reads a length, and then a string of that many bytes in UTF-8. Bytes that are not UTF-8 are refused as
     * {@code MALFORMED}.
     */
    public String string() {
        int length = length();
        int start = pos;
        pos = start + length;
        array(length);
        String s = new String(buf, start, length, StandardCharsets.UTF_8);
        int chars = s.length();
        if (chars != length) {
            // A string that is not ASCII may take two bytes of memory for each character. Whether the string is ASCII
            // is known only after it has been created, so these bytes are counted here.
            take(2 * chars);
            array(2L * chars);
        }
        // The JDK replaces bytes that are not UTF-8 by this character, so only a string with this character has to be
        // checked. If the string takes one byte for each character, indexOf returns without a search.
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

    /** Reads a length, and then an array of that many bytes. */
    public byte[] bytes() {
        int length = length();
        pos += length;
        array(length);
        return Arrays.copyOfRange(buf, pos - length, pos);
    }

    /** Reads a length and the 16 bytes of a UUID. Every length other than 16 is refused as {@code MALFORMED}. */
    public UUID uuid() {
        int length = length();
        if (length != 16) {
            throw malformed(length + " bytes for a UUID (expected: 16)");
        }
        pos += 16;
        return new UUID((long) LONG_BIG.get(buf, pos - 16), (long) LONG_BIG.get(buf, pos - 8));
    }

    /**
     * Reads a length, and then an integer of that many bytes in two's complement. Returns null if the length is 0. A
     * value of length 0 counts as never set, since an empty value is Protobuf's default for the type {@code bytes}. An
     * integer with too many digits is refused as {@code TOO_LARGE}.
     */
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

    /**
     * Reads an {@code rpcx.Decimal}. A decimal beyond the {@code digits} or {@code scale} of {@link Limits} is refused
     * as {@code TOO_LARGE}.
     */
    public BigDecimal decimal() {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        int at = 0;
        int bytes = 0;
        int scale = 0;
        // Most writers write the unscaled value before the scale, and these two steps read that order quickly. The loop
        // below reads the two fields in any order, which Protobuf allows.
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
        lookupCost += (long) bytes * bytes / SQUARE_DIVISOR;
        return new BigDecimal(new BigInteger(buf, at, bytes), scale);
    }

    private int sint32() {
        long v = varint();
        if (v >>> 32 != 0) {
            throw malformed(Long.toUnsignedString(v) + " for a zigzag number (expected: at most 32 bits)");
        }
        return (int) v >>> 1 ^ -((int) v & 1);
    }

    private void skipUnknown(int tag, int known, String what) {
        if (tag >>> 3 <= known) {
            throw malformed("wire type " + (tag & 7) + " for field " + (tag >>> 3) + " of " + what);
        }
        skipValue(tag);
    }

    /** Returns the empty array, which is the value of a plain field of type {@code bytes} that was never set. */
    public static byte[] noBytes() {
        return NO_BYTES;
    }

    void skipOfEntry(int tag, String field) {
        skipUnknown(tag, 2, "an entry of " + field);
    }

    /**
     * Reads a timestamp, duration or date-time, which consists of seconds and nanoseconds. Returns the seconds, and
     * stores the nanoseconds in {@link #nanos}.
     */
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

    /** Reads a {@code google.protobuf.Timestamp}. */
    public Instant instant() {
        long seconds = time("Timestamp");
        checkNanos(nanos >= 0);
        try {
            return Instant.ofEpochSecond(seconds, nanos);
        } catch (DateTimeException e) {
            throw malformed(seconds + " s for an instant (expected: within a thousand million years)");
        }
    }

    /** Reads a {@code google.protobuf.Timestamp}. What is finer than a millisecond is dropped. */
    public Date date() {
        Instant time = instant();
        try {
            return Date.from(time);
        } catch (IllegalArgumentException e) {
            throw malformed(time + " for a date (expected: one that java.util.Date can hold)");
        }
    }

    /** Reads a {@code google.protobuf.Duration}. */
    public Duration duration() {
        long seconds = time("Duration");
        checkNanos(nanos > -1_000_000_000 && (nanos == 0 || seconds == 0 || seconds > 0 == nanos > 0));
        try {
            return Duration.ofSeconds(seconds, nanos);
        } catch (ArithmeticException e) {
            throw malformed(seconds + " s and " + nanos
                    + " ns for a duration (expected: one that java.time.Duration can hold)");
        }
    }

    /** Reads an {@code rpcx.LocalDateTime}. */
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

    /** Reads an {@code rpcx.LocalDate}. */
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

    /** Reads a {@code google.type.TimeOfDay}. The hour 24 and leap seconds are refused as {@code MALFORMED}. */
    public LocalTime localTime() {
        int outerEnd = beginRun();
        int hours = 0;
        int minutes = 0;
        int seconds = 0;
        int n = 0;
        for (int tag; (tag = tag()) != 0; ) {
            switch (tag) {
                case 1 << 3 -> hours = int32();
                case 2 << 3 -> minutes = int32();
                case 3 << 3 -> seconds = int32();
                case 4 << 3 -> n = int32();
                default -> skipUnknown(tag, 4, "a TimeOfDay");
            }
        }
        endRun(outerEnd);
        try {
            return LocalTime.of(hours, minutes, seconds, n);
        } catch (DateTimeException e) {
            throw malformed(hours + " h, " + minutes + " min, " + seconds + " s and " + n
                    + " ns for a time of day (expected: 0 h to 23 h 59 min 59 s 999999999 ns)");
        }
    }

    /**
     * Reads a {@code google.type.DateTime} with an offset. One with a time zone, or with neither of the two, is refused
     * as {@code MALFORMED}.
     */
    public OffsetDateTime offsetDateTime() {
        int outerEnd = beginRun();
        int year = 0;
        int month = 0;
        int day = 0;
        int hours = 0;
        int minutes = 0;
        int seconds = 0;
        int n = 0;
        long offset = 0;
        boolean hasOffset = false;
        for (int tag; (tag = tag()) != 0; ) {
            switch (tag) {
                case 1 << 3 -> year = int32();
                case 2 << 3 -> month = int32();
                case 3 << 3 -> day = int32();
                case 4 << 3 -> hours = int32();
                case 5 << 3 -> minutes = int32();
                case 6 << 3 -> seconds = int32();
                case 7 << 3 -> n = int32();
                case 8 << 3 | 2 -> {
                    offset = time("Duration");
                    hasOffset = nanos == 0;
                }
                case 9 << 3 | 2 -> {
                    // a time zone takes the place of an offset before it, since both are of one oneof
                    skipValue(tag);
                    hasOffset = false;
                }
                default -> skipUnknown(tag, 9, "a DateTime");
            }
        }
        endRun(outerEnd);
        if (!hasOffset || offset != (int) offset) {
            throw malformed("a DateTime without an offset (expected: utc_offset, in seconds)");
        }
        if (offset % KEPT_OFFSET_SECONDS != 0) {
            take(OFFSET_BYTES);
        }
        try {
            ZoneOffset utcOffset = ZoneOffset.ofTotalSeconds((int) offset);
            return OffsetDateTime.of(year, month, day, hours, minutes, seconds, n, utcOffset);
        } catch (DateTimeException e) {
            throw malformed("year " + year + ", month " + month + ", day " + day + ", " + hours + " h, " + minutes
                    + " min, " + seconds + " s, " + n + " ns and an offset of " + offset
                    + " s for a date and time (expected: one that there is)");
        }
    }

    /** Reads an {@code rpcx.ZonedDateTime}. A zone that this Java does not know is refused as {@code MALFORMED}. */
    public ZonedDateTime zonedDateTime() {
        int outerEnd = beginRun();
        Instant time = Instant.EPOCH;
        String zone = "";
        for (int tag; (tag = tag()) != 0; ) {
            switch (tag) {
                case 1 << 3 | 2 -> time = instant();
                case 2 << 3 | 2 -> zone = string();
                default -> skipUnknown(tag, 2, "a ZonedDateTime");
            }
        }
        endRun(outerEnd);
        try {
            return ZonedDateTime.ofInstant(time, zone.isEmpty() ? ZoneOffset.UTC : ZoneId.of(zone));
        } catch (DateTimeException e) {
            throw malformed("a zone of " + zone.length() + " characters for the time " + time
                    + " (expected: an id that this Java knows, and a time that its clock can show)");
        }
    }

    /** Reads a string, which has to be a URI. */
    URI uri() {
        String text = string();
        // The parts of a URI repeat its characters at most twice, and a character takes at most two bytes.
        take(2 * text.length());
        take(2 * text.length());
        try {
            return new URI(text);
        } catch (URISyntaxException e) {
            throw malformed("a URI with a fault at character " + e.getIndex() + " of " + text.length() + ": "
                    + e.getReason() + " (expected: a URI by RFC 3986)");
        }
    }

    Object message(MessageCodec codec) {
        int length = length();
        int outerEnd = end;
        int outer = currentNumber;
        end = pos + length;
        currentNumber = codec.number;
        int bytes = codec.shallowBytes;
        memory(bytes);
        enter();
        Object v = codec.read(this);
        depth--;
        currentNumber = outer;
        end = outerEnd;
        return v;
    }

    /**
     * Returns the value of a message without bytes. A map entry that was sent without its value gets this value too.
     */
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

    /**
     * Reads a length, and limits reading to that many bytes, for example to the bytes of a packed list. Returns the end
     * that applied before, which the caller has to pass to {@link #endRun}.
     */
    int beginRun() {
        int length = length();
        int outerEnd = end;
        end = pos + length;
        return outerEnd;
    }

    void endRun(int outerEnd) {
        end = outerEnd;
    }

    /**
     * Reads the length of a map entry, and limits reading to that many bytes. The entry counts as a nested message for
     * the limit of depth. Returns the end up to which reading was allowed before. The caller has to pass this end to
     * {@link #endEntry}.
     */
    int beginEntry() {
        enter();
        return beginRun();
    }

    void endEntry(int outerEnd) {
        endRun(outerEnd);
        depth--;
    }
}
