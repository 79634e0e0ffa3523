package dev.rpcx.cli;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.TimestampProto;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads messages from JSON by the mapping that Protobuf defines. {@link JsonReply} writes the same forms. Source:
 * https://protobuf.dev/programming-guides/json/. Of the messages that have a form of their own there, RPCX uses
 * {@code Timestamp} and {@code Duration}.
 *
 * <p>The JSON must not contain anything that would not be sent as it is written. In this, the class is stricter than
 * the mapping: unknown fields, fields that occur twice, and spare bits of Base64 are errors. A number stands for its
 * value, however it is written: 1e2 is 100. Most decimal fractions are not exactly a {@code double} or a {@code float}.
 * For these types a number is accepted if it differs from the one that is sent by at most half a unit of its last
 * digit, not counting zeros at the end: 0.1, 0.10000000000000001 and 1e23 are accepted, but neither 1e-400 nor
 * 9007199254740993. What Java prints for a {@code double} or {@code float} is accepted too.
 */
final class JsonRequest {
    static final JsonMapper JSON = JsonMapper.shared();

    /** Values that are not numbers in JSON, as Protobuf writes them. */
    private static final Set<String> NOT_FINITE = Set.of("NaN", "Infinity", "-Infinity");

    /** A number as JSON has it, and with a plus, as it may stand in a string. */
    private static final Pattern NUMBER = Pattern.compile("[-+]?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?");

    /** Largest number of characters of a number in a string, as Jackson has it for a number that is no string. */
    private static final int MAX_NUMBER_LENGTH = 1_000;

    /** Largest number of digits of a whole number: 2^64 has twenty. */
    private static final int MAX_DIGITS = 20;

    /** A time of RFC 3339, in capitals. A {@link DateTimeFormatter} also reads lower case, the hour 24, and more. */
    private static final Pattern TIME = Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"
            + "T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}"
            + "(\\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})");

    private static final Pattern SECONDS = Pattern.compile("(-?)([0-9]{1,12})(?:\\.([0-9]{1,9}))?s");

    /** Largest number of seconds of a {@code Duration}, about 10 000 years. Source: duration.proto. */
    static final long MAX_DURATION_SECONDS = 315_576_000_000L;

    /** The first second of the year 1, and the last one of the year 9999. Source: timestamp.proto. */
    static final long MIN_SECONDS = Instant.parse("0001-01-01T00:00:00Z").getEpochSecond();

    static final long MAX_SECONDS = Instant.parse("9999-12-31T23:59:59Z").getEpochSecond();

    static final String TIMESTAMP =
            TimestampProto.getDescriptor().getMessageTypes().get(0).getFullName();
    static final String DURATION =
            DurationProto.getDescriptor().getMessageTypes().get(0).getFullName();

    private final JsonParser in;

    private JsonRequest(JsonParser in) {
        this.in = in;
    }

    /**
     * Returns the encoded message of a text that is one JSON object.
     *
     * @throws Mistake if the text is not one JSON object, or if the object does not fit the message; the text says
     *     where
     */
    static byte[] read(String json, Descriptor type) {
        try (JsonParser in = JSON.createParser(json)) {
            if (in.nextToken() == null) {
                throw new Mistake("no JSON (expected: " + expected(type) + ")");
            }
            byte[] request = new JsonRequest(in).message(type, "").toByteArray();
            if (in.nextToken() != null) {
                throw new Mistake(
                        place(in.currentTokenLocation()) + "more text behind the JSON object (expected: one object)");
            }
            return request;
        } catch (JacksonException e) {
            throw unreadable(e, expected(type));
        }
    }

    /**
     * Returns the encoded message of the JSON object with whose first token the parser stands.
     *
     * @throws Mistake if the object does not fit the message
     * @throws JacksonException if the text is not JSON
     */
    static byte[] readNext(JsonParser in, Descriptor type) {
        return new JsonRequest(in).message(type, "").toByteArray();
    }

    /** Returns a mistake in words of this tool: Jackson's own text names its classes and settings. */
    static Mistake unreadable(JacksonException e, String expected) {
        String what = e instanceof StreamConstraintsException
                ? "JSON inside JSON more than 500 deep, a number of more than 1000 digits, a name of more than 50000"
                        + " characters, or a string of more than 20000000"
                : "not valid JSON";
        return new Mistake(place(e.getLocation()) + what + " (expected: " + expected + ")");
    }

    private static String place(@Nullable TokenStreamLocation at) {
        return at == null || at.getLineNr() < 1 ? "" : "line " + at.getLineNr() + ", column " + at.getColumnNr() + ": ";
    }

    /** @param at where the message is in the request; empty for the request itself */
    private DynamicMessage message(Descriptor type, String at) {
        if (type.getFullName().equals(TIMESTAMP)) {
            return timestamp(type, at);
        }
        if (type.getFullName().equals(DURATION)) {
            return duration(type, at);
        }
        expect(JsonToken.START_OBJECT, at, expected(type));
        DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
        Set<FieldDescriptor> met = new HashSet<>();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            FieldDescriptor field = field(type, in.currentName(), at);
            String place = at.isEmpty() ? field.getJsonName() : at + "." + field.getJsonName();
            if (!met.add(field)) {
                throw new Mistake(place + ": stands there twice (expected: once)");
            }
            in.nextToken();
            // null stands for a field that is not there
            if (in.currentToken() != JsonToken.VALUE_NULL) {
                refuseSecondCase(message, field, place);
                set(message, field, place);
            }
        }
        return message.build();
    }

    /** Finds a field by its name in JSON, or by its name in the {@code .proto}. */
    private static FieldDescriptor field(Descriptor type, String name, String at) {
        List<String> names = names(type);
        for (FieldDescriptor field : type.getFields()) {
            if (field.getJsonName().equals(name) || field.getName().equals(name)) {
                return field;
            }
        }
        throw new Mistake((at.isEmpty() ? "the request" : at) + ": no field " + Printable.clipped(name) + " in "
                + type.getFullName() + Printable.nearest(name, names) + " (expected: " + listed(names) + ")");
    }

    private static List<String> names(Descriptor type) {
        return type.getFields().stream().map(FieldDescriptor::getJsonName).toList();
    }

    private static String listed(List<String> names) {
        return names.isEmpty() ? "no fields" : String.join(", ", names);
    }

    private static void refuseSecondCase(DynamicMessage.Builder message, FieldDescriptor field, String at) {
        OneofDescriptor oneof = field.getRealContainingOneof();
        if (oneof != null && message.hasOneof(oneof)) {
            throw new Mistake(at + ": stands beside "
                    + message.getOneofFieldDescriptor(oneof).getJsonName() + " (expected: one of "
                    + oneof.getFields().stream()
                            .map(FieldDescriptor::getJsonName)
                            .collect(Collectors.joining(", "))
                    + ")");
        }
    }

    private void set(DynamicMessage.Builder message, FieldDescriptor field, String at) {
        if (field.isMapField()) {
            map(message, field, at);
        } else if (field.isRepeated()) {
            expect(JsonToken.START_ARRAY, at, "an array, each element " + expected(field));
            for (int i = 0; in.nextToken() != JsonToken.END_ARRAY; i++) {
                message.addRepeatedField(field, value(field, at + "[" + i + "]"));
            }
        } else {
            message.setField(field, value(field, at));
        }
    }

    private void map(DynamicMessage.Builder message, FieldDescriptor field, String at) {
        FieldDescriptor keys = field.getMessageType().findFieldByNumber(1);
        FieldDescriptor values = field.getMessageType().findFieldByNumber(2);
        expect(JsonToken.START_OBJECT, at, "an object, each value " + expected(values));
        Set<Object> met = new HashSet<>();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            String place = at + "[" + Printable.clipped(name) + "]";
            Object key = key(keys, name, at);
            if (!met.add(key)) {
                throw new Mistake(place + ": stands there twice (expected: each key once)");
            }
            in.nextToken();
            message.addRepeatedField(
                    field,
                    DynamicMessage.newBuilder(field.getMessageType())
                            .setField(keys, key)
                            .setField(values, value(values, place))
                            .build());
        }
    }

    /** Reads a key of a map, which is a string in JSON, whatever its type is. */
    private static Object key(FieldDescriptor field, String text, String at) {
        Object key = switch (field.getJavaType()) {
            case STRING -> hasHalfPair(text) ? null : text;
            case BOOLEAN -> text.equals("true") || text.equals("false") ? Boolean.valueOf(text) : null;
            default -> integer(field, text);
        };
        if (key == null) {
            throw new Mistake(at + ": key " + Printable.clipped(text) + " (expected: " + expected(field) + ")");
        }
        return key;
    }

    /** Reads a value of a field, or an element of a field that is an array. */
    private Object value(FieldDescriptor field, String at) {
        return switch (field.getJavaType()) {
            case BOOLEAN -> {
                JsonToken token = in.currentToken();
                if (token != JsonToken.VALUE_TRUE && token != JsonToken.VALUE_FALSE) {
                    throw wrong(at, expected(field));
                }
                yield token == JsonToken.VALUE_TRUE;
            }
            case INT, LONG -> {
                Object number = isNumber() || in.currentToken() == JsonToken.VALUE_STRING
                        ? integer(field, in.getString())
                        : null;
                if (number == null) {
                    throw wrong(at, expected(field));
                }
                yield number;
            }
            case FLOAT -> real(field, at, Float::valueOf);
            case DOUBLE -> real(field, at, Double::valueOf);
            case STRING -> {
                String text = text(field, at);
                if (hasHalfPair(text)) {
                    throw wrong(at, "a string without half a surrogate pair, for which UTF-8 has no bytes");
                }
                yield text;
            }
            case BYTE_STRING -> base64(field, at);
            case ENUM -> enumValue(field, at);
            case MESSAGE -> message(field.getMessageType(), at);
        };
    }

    private static boolean hasHalfPair(String text) {
        return text.codePoints().anyMatch(c -> c <= Character.MAX_VALUE && Character.isSurrogate((char) c));
    }

    /**
     * Returns a whole number as protobuf-java has it for the field's type; null if the text is no such number. A number
     * with a fraction of zeros is a whole one too.
     */
    private static @Nullable Object integer(FieldDescriptor field, String text) {
        BigDecimal number = decimal(text);
        if (number == null) {
            return null;
        }
        if (number.signum() == 0) {
            number = BigDecimal.ZERO;
        }
        long digits = (long) number.precision() - number.scale();
        if (digits > MAX_DIGITS || number.signum() != 0 && digits < 1) {
            return null;
        }
        BigInteger whole;
        try {
            whole = number.toBigIntegerExact();
        } catch (ArithmeticException fraction) {
            return null;
        }
        BigInteger[] range = range(field);
        if (whole.compareTo(range[0]) < 0 || whole.compareTo(range[1]) > 0) {
            return null;
        }
        // An unsigned number that is too large for Java's type becomes the negative number of the same bits.
        if (field.getJavaType() == FieldDescriptor.JavaType.LONG) {
            return whole.longValue();
        }
        return whole.intValue();
    }

    /** Returns the smallest and the largest whole number of the field's type. */
    private static BigInteger[] range(FieldDescriptor field) {
        int bits = field.getJavaType() == FieldDescriptor.JavaType.LONG ? Long.SIZE : Integer.SIZE;
        BigInteger half = BigInteger.ONE.shiftLeft(bits - 1);
        return switch (field.getType()) {
            case UINT32, UINT64, FIXED32, FIXED64 ->
                new BigInteger[] {BigInteger.ZERO, half.shiftLeft(1).subtract(BigInteger.ONE)};
            default -> new BigInteger[] {half.negate(), half.subtract(BigInteger.ONE)};
        };
    }

    /** Returns the number; null if the text is none, or if its exponent is beyond the range of a {@link BigDecimal}. */
    private static @Nullable BigDecimal decimal(String text) {
        if (text.length() > MAX_NUMBER_LENGTH || !NUMBER.matcher(text).matches()) {
            return null;
        }
        try {
            return new BigDecimal(text);
        } catch (NumberFormatException e) {
            return null;
        }
    }

    private boolean isNumber() {
        return in.currentToken() == JsonToken.VALUE_NUMBER_INT || in.currentToken() == JsonToken.VALUE_NUMBER_FLOAT;
    }

    /**
     * Reads a float or a double, also one that is not finite, and one in a string.
     *
     * @param nearest returns the number of the type that is nearest to the one that is written
     */
    private <N extends Number> N real(FieldDescriptor field, String at, Function<String, N> nearest) {
        if (!isNumber() && in.currentToken() != JsonToken.VALUE_STRING) {
            throw wrong(at, expected(field));
        }
        String text = in.getString();
        if (!isNumber() && NOT_FINITE.contains(text)) {
            return nearest.apply(text);
        }
        BigDecimal written = decimal(text);
        N number = written == null ? null : nearest.apply(text);
        if (written == null || number == null || !Double.isFinite(number.doubleValue())) {
            throw wrong(at, expected(field));
        }
        if (!isAsWritten(number, written)) {
            throw wrong(at, expected(field) + "; the nearest is " + number);
        }
        return number;
    }

    /**
     * Whether the two numbers differ by at most half a unit of the last digit written, not counting zeros at the end.
     */
    private static boolean isAsWritten(Number number, BigDecimal written) {
        // The decimal has all digits of the binary fraction; a float becomes a double without loss.
        BigDecimal exact = new BigDecimal(number.doubleValue());
        if (written.signum() == 0 || exact.signum() == 0) {
            return written.signum() == exact.signum();
        }
        BigDecimal digits = written.stripTrailingZeros();
        BigDecimal apart = exact.subtract(digits).abs();
        return apart.add(apart).compareTo(digits.ulp()) <= 0
                // Java before 19 prints some numbers with a different last digit.
                || digits.compareTo(new BigDecimal(number.toString())) == 0;
    }

    private String text(FieldDescriptor field, String at) {
        expect(JsonToken.VALUE_STRING, at, expected(field));
        return in.getString();
    }

    /**
     * Decodes Base64 of either alphabet, with or without padding. Bits that belong to no byte have to be zero, since
     * they would not be sent.
     */
    private ByteString base64(FieldDescriptor field, String at) {
        String standard = text(field, at).replace('-', '+').replace('_', '/');
        try {
            byte[] bytes = Base64.getDecoder().decode(standard);
            Base64.Encoder encoder = Base64.getEncoder();
            if (encoder.encodeToString(bytes).equals(standard)
                    || encoder.withoutPadding().encodeToString(bytes).equals(standard)) {
                return ByteString.copyFrom(bytes);
            }
        } catch (IllegalArgumentException e) {
            // The mistake is thrown below.
        }
        throw wrong(at, expected(field));
    }

    /** Reads the name of a constant, or its number, which need not be that of a constant. */
    private EnumValueDescriptor enumValue(FieldDescriptor field, String at) {
        if (in.currentToken() == JsonToken.VALUE_STRING) {
            EnumValueDescriptor named = field.getEnumType().findValueByName(in.getString());
            if (named != null) {
                return named;
            }
        } else if (isNumber() && integer(field, in.getString()) instanceof Integer number) {
            return field.getEnumType().findValueByNumberCreatingIfUnknown(number);
        }
        throw wrong(at, expected(field));
    }

    /** Reads a point in time, at any offset. A leap second is an error, since {@link Instant} does not have it. */
    private DynamicMessage timestamp(Descriptor type, String at) {
        String expected = expected(type);
        expect(JsonToken.VALUE_STRING, at, expected);
        if (!TIME.matcher(in.getString()).matches()) {
            throw wrong(at, expected);
        }
        try {
            TemporalAccessor parsed = DateTimeFormatter.ISO_INSTANT.parse(in.getString());
            Instant instant = Instant.from(parsed);
            if (!Boolean.TRUE.equals(parsed.query(DateTimeFormatter.parsedLeapSecond()))
                    && instant.getEpochSecond() >= MIN_SECONDS
                    && instant.getEpochSecond() <= MAX_SECONDS) {
                return time(type, instant.getEpochSecond(), instant.getNano());
            }
        } catch (DateTimeException e) {
            // The mistake is thrown below.
        }
        throw wrong(at, expected);
    }

    private DynamicMessage duration(Descriptor type, String at) {
        String expected = expected(type);
        expect(JsonToken.VALUE_STRING, at, expected);
        Matcher parts = SECONDS.matcher(in.getString());
        if (!parts.matches() || Long.parseLong(parts.group(2)) > MAX_DURATION_SECONDS) {
            throw wrong(at, expected);
        }
        int sign = parts.group(1).isEmpty() ? 1 : -1;
        String fraction = parts.group(3) == null ? "" : parts.group(3);
        int nanos = Integer.parseInt((fraction + "000000000").substring(0, 9));
        if (nanos > 0 && Long.parseLong(parts.group(2)) == MAX_DURATION_SECONDS) {
            throw wrong(at, expected);
        }
        return time(type, sign * Long.parseLong(parts.group(2)), sign * nanos);
    }

    private static DynamicMessage time(Descriptor type, long seconds, int nanos) {
        return DynamicMessage.newBuilder(type)
                .setField(type.findFieldByNumber(1), seconds)
                .setField(type.findFieldByNumber(2), nanos)
                .build();
    }

    private void expect(JsonToken token, String at, String expected) {
        if (in.currentToken() != token) {
            throw wrong(at, expected);
        }
    }

    private Mistake wrong(String at, String expected) {
        JsonToken token = in.currentToken();
        String value = token == JsonToken.START_OBJECT
                ? "an object"
                : token == JsonToken.START_ARRAY
                        ? "an array"
                        : token == JsonToken.VALUE_STRING
                                ? '"' + Printable.clipped(in.getString()) + '"'
                                : Printable.clipped(String.valueOf(in.getString()));
        return new Mistake((at.isEmpty() ? "the request" : at) + ": " + value + " (expected: " + expected + ")");
    }

    private static String expected(FieldDescriptor field) {
        return switch (field.getJavaType()) {
            case BOOLEAN -> "true or false";
            case INT, LONG -> {
                BigInteger[] range = range(field);
                yield "an integer from " + range[0] + " to " + range[1];
            }
            case FLOAT ->
                "a number up to 3.4e38 that a float holds to the last digit written, or \"NaN\", \"Infinity\","
                        + " \"-Infinity\"";
            case DOUBLE ->
                "a number up to 1.8e308 that a double holds to the last digit written, or \"NaN\", \"Infinity\","
                        + " \"-Infinity\"";
            case STRING -> "a string";
            case BYTE_STRING -> "a string of Base64, its spare bits zero";
            case ENUM ->
                "a number, or one of "
                        + field.getEnumType().getValues().stream()
                                .map(value -> '"' + value.getName() + '"')
                                .collect(Collectors.joining(", "));
            case MESSAGE -> expected(field.getMessageType());
        };
    }

    /** Returns in words what JSON of a message is. */
    static String expected(Descriptor type) {
        if (type.getFullName().equals(TIMESTAMP)) {
            return "a string such as \"2026-12-31T23:59:59Z\", in the years 1 to 9999, no leap second";
        }
        if (type.getFullName().equals(DURATION)) {
            return "a string such as \"1.5s\", of at most " + MAX_DURATION_SECONDS + " seconds";
        }
        boolean isOneof = !type.getFields().isEmpty()
                && type.getFields().stream().allMatch(field -> field.getRealContainingOneof() != null);
        return (isOneof ? "an object with one of " : "an object of " + type.getFullName() + ": ") + listed(names(type));
    }
}
