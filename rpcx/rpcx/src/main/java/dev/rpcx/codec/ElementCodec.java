package dev.rpcx.codec;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Writes and reads one value of a {@link Shape}, for example an element of a list or the value of an optional field.
 * The value is an object, and it is written without a tag. This class is longer than 400 lines because every scalar has
 * up to five short methods here.
 */
abstract class ElementCodec {
    /** Memory in bytes of an object that has one field of at most four bytes, such as an {@code Integer}. */
    private static final int BOX_BYTES = 16;

    /** Memory in bytes of an object that has one field of eight bytes, such as a {@code Long}. */
    private static final int WIDE_BOX_BYTES = 24;

    // These constants hold for a heap of up to 32 GB, and include all objects of which a value consists, except the
    // BigInteger of a decimal of more than eight bytes, which In counts. MemoryTest compares them with what the virtual
    // machine allocates.

    /**
     * Memory in bytes of a string without its content, which already counts as bytes of the message. The same number is
     * counted for a byte array, although a byte array takes less.
     */
    private static final int STRING_BYTES = 40;

    private static final int UUID_BYTES = 32;

    /** Memory in bytes of a {@code BigInteger} without its digits. The digits already count as bytes of the message. */
    static final int BIG_INTEGER_BYTES = 64;

    private static final int DECIMAL_BYTES = 40;
    private static final int INSTANT_BYTES = 24;
    private static final int DURATION_BYTES = 24;
    private static final int LOCAL_DATE_BYTES = 24;

    /** Memory in bytes of a {@code LocalDateTime}, with the objects for its date and its time. */
    private static final int LOCAL_DATE_TIME_BYTES = 72;

    private static final int DATE_BYTES = 24;
    private static final int LOCAL_TIME_BYTES = 24;

    /** Memory in bytes of an {@code OffsetDateTime}. The JDK keeps the objects of most offsets. */
    private static final int OFFSET_DATE_TIME_BYTES = LOCAL_DATE_TIME_BYTES + 24;

    /** Memory in bytes of a {@code ZonedDateTime}, with the object of its zone and its string for the zone's id. */
    private static final int ZONED_DATE_TIME_BYTES = LOCAL_DATE_TIME_BYTES + 24 + 24 + STRING_BYTES;

    /** Memory in bytes of a URI and of the strings for its parts, without the characters of these strings. */
    private static final int URI_BYTES = 88 + 5 * STRING_BYTES;

    /**
     * Memory in bytes of the Java objects of one value. Content that already counts as bytes of the message is not
     * included. The caller of {@link #read} has to count this memory. The number is 0 if no value needs an object of
     * its own, or if {@link In} counts the object.
     */
    final int objectBytes;

    private ElementCodec(int objectBytes) {
        this.objectBytes = objectBytes;
    }

    /** Writes the value, after its length if the wire type needs one. */
    abstract void write(Out out, Object value);

    /**
     * Reads one value, in the form that {@link #write} uses. Returns null for a {@code BigInteger} of 0 bytes, and for
     * the number 0 of an enum that has no constant with this number. {@code write} never writes such a value. When it
     * is read, it counts as a value that is not set.
     */
    abstract @Nullable Object read(In in);

    /** Returns the value of a plain field that is not in the message; null if the shape has no default. */
    @Nullable
    Object absent() {
        return null;
    }

    /** Returns whether this value is the default of the shape, which a plain field does not send. */
    boolean isDefault(Object value) {
        return false;
    }

    /**
     * Returns null if a plain field of this shape may be null. Otherwise returns what the error for a null field calls
     * the value, for example "a string" for the text "a string is null".
     */
    @Nullable
    String refusesNull() {
        Object absent = absent();
        // A number or boolean in a plain field can be null: the schema treats the result of a
        // CompletableFuture<Integer> as an int, but in Java this result is an Integer.
        return absent instanceof Number || absent instanceof Boolean || absent instanceof Character
                ? "a number or a boolean"
                : null;
    }

    /**
     * Returns whether a hash table of these values stays fast even if a sender chooses many values with the same hash.
     * If the result is false, {@link KeyHashes} counts the cost of comparing the values.
     *
     * <p>The JDK's hash tables order values of the same hash only if the class of the values implements
     * {@code Comparable} of this same class, as {@code UUID} implements {@code Comparable<UUID>}. {@code LocalDate},
     * {@code LocalDateTime} and {@code ZonedDateTime} do not. For decimals, the result is false because comparing two
     * of them may cost a multiplication of all digits. For enums, the result is true because a sender cannot choose
     * their hashes.
     */
    boolean hasOrder() {
        return true;
    }

    static ElementCodec of(Shape shape, MessageLink message) {
        if (shape instanceof Scalar scalar) {
            return scalar(scalar);
        }
        if (shape instanceof WellKnown wellKnown) {
            return wellKnown(wellKnown);
        }
        return shape instanceof EnumType type ? new EnumElement(type) : new MessageElement(message);
    }

    /**
     * Link to the codec of a message type. Types may contain each other or themselves, so a codec may need a link to a
     * codec that does not exist yet. That codec is set in the link as soon as it has been created.
     */
    static final class MessageLink {
        @Nullable
        MessageCodec codec;

        MessageCodec codec() {
            MessageCodec linked = codec;
            if (linked == null) {
                throw new IllegalStateException("codec used before it is linked");
            }
            return linked;
        }
    }

    /** Returns the link to the codec of the values if the values are messages; null otherwise. */
    @Nullable
    MessageLink message() {
        return null;
    }

    private static final class MessageElement extends ElementCodec {
        private final MessageLink link;

        MessageElement(MessageLink link) {
            super(0);
            this.link = link;
        }

        @Override
        void write(Out out, Object value) {
            out.rawMessage(value, link.codec());
        }

        @Override
        Object read(In in) {
            return in.message(link.codec());
        }

        @Override
        MessageLink message() {
            return link;
        }

        @Override
        boolean hasOrder() {
            return false;
        }
    }

    private static final class EnumElement extends ElementCodec {
        private final EnumType type;
        private final int[] numbers;
        private final Enum<?>[] dense;
        private final Map<Integer, Enum<?>> byNumber = new HashMap<>();

        EnumElement(EnumType type) {
            super(0);
            this.type = type;
            numbers = type.numbers().stream().mapToInt(n -> n).toArray();
            int highest = Arrays.stream(numbers).max().orElse(0);
            dense = new Enum<?>[Math.min(highest, 1023) + 1];
            Enum<?>[] constants = type.constants();
            for (int i = 0; i < constants.length; i++) {
                byNumber.putIfAbsent(numbers[i], constants[i]);
                if (numbers[i] < dense.length) {
                    dense[numbers[i]] = constants[i];
                }
            }
        }

        @Override
        void write(Out out, Object value) {
            out.rawInt32(numbers[((Enum<?>) value).ordinal()]);
        }

        @Override
        @Nullable
        Object read(In in) {
            int number = in.int32();
            @Nullable Enum<?> constant = number >= 0 && number < dense.length ? dense[number] : null;
            return constant != null ? constant : rare(in, number);
        }

        private @Nullable Object rare(In in, int number) {
            Object sparse = byNumber.get(number);
            if (sparse != null) {
                return sparse;
            }
            if (type.unknown() != null || number == 0) {
                return type.unknown();
            }
            throw in.refused(
                    CodecException.Code.UNKNOWN_VALUE,
                    number + " for " + type.protoName()
                            + ", which does not have it (a constant UNKNOWN or one annotated @Unknown would stand for"
                            + " it)");
        }

        @Override
        @Nullable
        Object absent() {
            return dense[0];
        }

        @Override
        boolean isDefault(Object value) {
            return numbers[((Enum<?>) value).ordinal()] == 0;
        }

        @Override
        @Nullable
        String refusesNull() {
            return dense[0] == null ? null : "an enum";
        }
    }

    private static ElementCodec scalar(Scalar scalar) {
        return switch (scalar) {
            case BOOL ->
                new ElementCodec(0) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawBool((Boolean) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.bool();
                    }

                    @Override
                    Object absent() {
                        return false;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return !(Boolean) value;
                    }
                };
            case BYTE ->
                new ElementCodec(0) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInt32((Byte) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.int8();
                    }

                    @Override
                    Object absent() {
                        return (byte) 0;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return (Byte) value == 0;
                    }
                };
            case SHORT ->
                new ElementCodec(BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInt32((Short) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.int16();
                    }

                    @Override
                    Object absent() {
                        return (short) 0;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return (Short) value == 0;
                    }
                };
            case CHAR ->
                new ElementCodec(BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInt32((Character) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.char16();
                    }

                    @Override
                    Object absent() {
                        return (char) 0;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return (Character) value == 0;
                    }
                };
            case INT ->
                new ElementCodec(BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInt32((Integer) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.int32();
                    }

                    @Override
                    Object absent() {
                        return 0;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return (Integer) value == 0;
                    }
                };
            case LONG ->
                new ElementCodec(WIDE_BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInt64((Long) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.int64();
                    }

                    @Override
                    Object absent() {
                        return 0L;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return (Long) value == 0;
                    }
                };
            case FLOAT ->
                new ElementCodec(BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawFloat((Float) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.float32();
                    }

                    @Override
                    Object absent() {
                        return 0f;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return Float.floatToRawIntBits((Float) value) == 0;
                    }
                };
            case DOUBLE ->
                new ElementCodec(WIDE_BOX_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawDouble((Double) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.float64();
                    }

                    @Override
                    Object absent() {
                        return 0d;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return Double.doubleToRawLongBits((Double) value) == 0;
                    }
                };
            case STRING ->
                new ElementCodec(STRING_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawString((String) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.string();
                    }

                    @Override
                    Object absent() {
                        return "";
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return ((String) value).isEmpty();
                    }

                    @Override
                    String refusesNull() {
                        return "a string";
                    }
                };
            case BYTES ->
                new ElementCodec(STRING_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawBytes((byte[]) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.bytes();
                    }

                    @Override
                    Object absent() {
                        return In.NO_BYTES;
                    }

                    @Override
                    boolean isDefault(Object value) {
                        return ((byte[]) value).length == 0;
                    }

                    @Override
                    String refusesNull() {
                        return "a byte array";
                    }
                };
            case UUID ->
                new ElementCodec(UUID_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawUuid((UUID) value);
                    }

                    @Override
                    @Nullable
                    Object read(In in) {
                        return in.uuid();
                    }
                };
            case BIG_INTEGER ->
                new ElementCodec(BIG_INTEGER_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawBigInteger((BigInteger) value);
                    }

                    @Override
                    @Nullable
                    Object read(In in) {
                        return in.bigInteger();
                    }
                };
            case URI ->
                new ElementCodec(URI_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawString(((URI) value).toString());
                    }

                    @Override
                    Object read(In in) {
                        return in.uri();
                    }
                };
        };
    }

    private static ElementCodec wellKnown(WellKnown wellKnown) {
        return switch (wellKnown) {
            case INSTANT ->
                new ElementCodec(INSTANT_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawInstant((Instant) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.instant();
                    }
                };
            case DATE ->
                new ElementCodec(DATE_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawDate((Date) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.date();
                    }
                };
            case DURATION ->
                new ElementCodec(DURATION_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawDuration((Duration) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.duration();
                    }
                };
            case DECIMAL ->
                new ElementCodec(DECIMAL_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawDecimal((BigDecimal) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.decimal();
                    }

                    @Override
                    boolean hasOrder() {
                        return false;
                    }
                };
            case LOCAL_DATE ->
                new ElementCodec(LOCAL_DATE_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawLocalDate((LocalDate) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.localDate();
                    }

                    @Override
                    boolean hasOrder() {
                        return false;
                    }
                };
            case LOCAL_DATE_TIME ->
                new ElementCodec(LOCAL_DATE_TIME_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawLocalDateTime((LocalDateTime) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.localDateTime();
                    }

                    @Override
                    boolean hasOrder() {
                        return false;
                    }
                };
            case LOCAL_TIME ->
                new ElementCodec(LOCAL_TIME_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawLocalTime((LocalTime) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.localTime();
                    }
                };
            case OFFSET_DATE_TIME ->
                new ElementCodec(OFFSET_DATE_TIME_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawOffsetDateTime((OffsetDateTime) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.offsetDateTime();
                    }
                };
            case ZONED_DATE_TIME ->
                new ElementCodec(ZONED_DATE_TIME_BYTES) {
                    @Override
                    void write(Out out, Object value) {
                        out.rawZonedDateTime((ZonedDateTime) value);
                    }

                    @Override
                    Object read(In in) {
                        return in.zonedDateTime();
                    }

                    @Override
                    boolean hasOrder() {
                        return false;
                    }
                };
        };
    }
}
