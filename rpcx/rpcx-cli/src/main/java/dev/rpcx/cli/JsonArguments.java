package dev.rpcx.cli;

import dev.rpcx.codec.Limits;
import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Constructor;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Date;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads a method's arguments from JSON by the schema with which the call is sent. The JSON must not contain anything
 * that would not be sent as it is written, and must contain everything that the method has to be given.
 * {@link JsonResult} writes the same forms.
 *
 * <p>A number stands for its value, however it is written: 1e2 is 100.0. Most decimal fractions are not exactly a
 * {@code double} or a {@code float}. For these types a number is accepted if it differs from the one that is sent by at
 * most half a unit of its last digit, not counting zeros at the end: 0.1, 0.10000000000000001 and 1e23 are accepted,
 * but neither 1e-400 nor 9007199254740993. What Java prints for a {@code double} or {@code float} is accepted too. A
 * time stands for its point in time, whatever its offset.
 */
final class JsonArguments {
    private static final JsonMapper JSON = JsonMapper.shared();

    /** Values that are not numbers in JSON, as Java writes them. */
    private static final Set<String> NOT_FINITE = Set.of("NaN", "Infinity", "-Infinity");

    private final JsonParser in;

    private JsonArguments(JsonParser in) {
        this.in = in;
    }

    /**
     * Returns the number of arguments.
     *
     * @param expected what should be there, for the error
     * @throws Mistake if the text is not JSON, or not exactly one array
     */
    static int count(String json, String expected) {
        try (JsonParser in = JSON.createParser(json)) {
            if (in.nextToken() != JsonToken.START_ARRAY) {
                throw new Mistake(Printable.clipped(json) + " (expected: " + expected + ")");
            }
            int count = 0;
            while (in.nextToken() != JsonToken.END_ARRAY) {
                in.skipChildren();
                count++;
            }
            if (in.nextToken() != null) {
                throw new Mistake(place(in.currentTokenLocation()) + "more text behind the JSON array (expected: "
                        + expected + ")");
            }
            return count;
        } catch (JacksonException e) {
            throw unreadable(e, expected);
        }
    }

    /**
     * Returns the arguments in the order of the parameters.
     *
     * @param json array with as many elements as the method has parameters, see {@link #count}
     * @throws Mistake if the method cannot be given an argument; the text says which one and where in it
     */
    static @Nullable Object[] read(String json, MessageType parameters) {
        try (JsonParser in = JSON.createParser(json)) {
            JsonArguments arguments = new JsonArguments(in);
            in.nextToken();
            in.nextToken();
            if (parameters.kind() != MessageType.Kind.PARAMETERS) {
                // The only parameter is the message itself.
                return new Object[] {arguments.element(parameters, "argument 1")};
            }
            @Nullable Object[] given = new Object[parameters.arity()];
            List<FieldType> fields = parameters.fields();
            for (int i = 0; i < fields.size(); i++) {
                given[parameters.positions().get(i)] = arguments.field(fields.get(i), "argument " + (i + 1));
                in.nextToken();
            }
            return given;
        } catch (JacksonException e) {
            throw unreadable(e, "JSON");
        }
    }

    /** Returns a mistake in words of this tool: Jackson's own text names its classes and settings. */
    private static Mistake unreadable(JacksonException e, String expected) {
        String what = e instanceof StreamConstraintsException
                ? "JSON inside JSON more than 500 deep, a number of more than 1000 digits, a name of more than 50000"
                        + " characters, or a string of more than 20000000"
                : "not valid JSON";
        return new Mistake(place(e.getLocation()) + what + " (expected: " + expected + ")");
    }

    private static String place(@Nullable TokenStreamLocation at) {
        return at == null || at.getLineNr() < 1 ? "" : "line " + at.getLineNr() + ", column " + at.getColumnNr() + ": ";
    }

    private @Nullable Object field(FieldType field, String at) {
        if (in.currentToken() == JsonToken.VALUE_NULL) {
            if (!hasNull(field)) {
                throw wrong(at, expected(field));
            }
            return absent(field);
        }
        return switch (field.holder()) {
            case PLAIN, NULLABLE -> element(field.shape(), at);
            case OPTIONAL -> Optional.of(element(field.shape(), at));
            case LIST -> elements(field, at, new ArrayList<>());
            case SET -> elements(field, at, new LinkedHashSet<>());
            case MAP -> map(field, at);
        };
    }

    private static boolean hasNull(FieldType field) {
        return switch (field.holder()) {
            case NULLABLE, OPTIONAL -> true;
            case PLAIN ->
                Schema.hasNull(field.shape()) || field.shape() instanceof EnumType type && type.unknown() == null;
            default -> false;
        };
    }

    private static @Nullable Object absent(FieldType field) {
        return field.holder() == FieldType.Holder.OPTIONAL ? Optional.empty() : null;
    }

    private java.util.Collection<Object> elements(FieldType field, String at, java.util.Collection<Object> into) {
        expect(JsonToken.START_ARRAY, at, expected(field));
        for (int i = 0; in.nextToken() != JsonToken.END_ARRAY; i++) {
            String place = at + "[" + i + "]";
            Object element = element(field.shape(), place);
            if (!into.add(element)) {
                throw new Mistake(place + ": stands in the set already (expected: each element once)");
            }
        }
        return into;
    }

    private Map<Object, Object> map(FieldType field, String at) {
        Map<Object, Object> map = new LinkedHashMap<>();
        Shape keys = java.util.Objects.requireNonNull(field.key());
        if (!isText(keys)) {
            return pairs(keys, field, at, map);
        }
        expect(JsonToken.START_OBJECT, at, expected(field));
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            String place = at + "[" + Printable.clipped(name) + "]";
            Object key = key(keys, name, at);
            in.nextToken();
            put(map, key, element(field.shape(), place), place);
        }
        return map;
    }

    private static void put(Map<Object, Object> map, Object key, Object value, String at) {
        if (map.put(key, value) != null) {
            throw new Mistake(at + ": stands there twice (expected: each key once)");
        }
    }

    /**
     * Reads a map whose keys are messages. These have no text, so the map is an array of objects with {@code key} and
     * {@code value}.
     */
    private Map<Object, Object> pairs(Shape keys, FieldType field, String at, Map<Object, Object> map) {
        expect(JsonToken.START_ARRAY, at, expected(field));
        for (int i = 0; in.nextToken() != JsonToken.END_ARRAY; i++) {
            String place = at + "[" + i + "]";
            Map<String, Object> pair = members(
                    place,
                    "a pair",
                    List.of("key", "value"),
                    name -> element(name.equals("key") ? keys : field.shape(), place + "." + name));
            Object key = pair.get("key");
            Object value = pair.get("value");
            if (key == null || value == null) {
                throw new Mistake(place + ": a pair without " + (key == null ? "key" : "value")
                        + " (expected: {\"key\": …, \"value\": …})");
            }
            put(map, key, value, place);
        }
        return map;
    }

    static boolean isText(Shape key) {
        return !(key instanceof MessageType);
    }

    /** Reads a key of a map, which is a string in JSON, whatever it is in Java. */
    private static Object key(Shape shape, String text, String at) {
        boolean isNumber = shape instanceof Scalar scalar
                        && switch (scalar) {
                            case STRING, CHAR, UUID, URI, BYTES -> false;
                            case FLOAT, DOUBLE -> !NOT_FINITE.contains(text);
                            default -> true;
                        }
                || shape == WellKnown.DECIMAL;
        try (JsonParser in = JSON.createParser(isNumber ? text : JSON.writeValueAsString(text))) {
            // JSON allows spaces around a number, but a key must not have any.
            if (in.nextToken() != null && text.equals(in.getString())) {
                Object key = new JsonArguments(in).element(shape, at + ", key " + Printable.clipped(text));
                if (in.nextToken() == null) {
                    return key;
                }
            }
        } catch (JacksonException e) {
            // The mistake is thrown below.
        }
        throw new Mistake(at + ": key " + Printable.clipped(text) + " (expected: " + expected(shape) + ")");
    }

    /** Reads a value that cannot be null. */
    private Object element(Shape shape, String at) {
        if (in.currentToken() == JsonToken.VALUE_NULL) {
            throw wrong(at, expected(shape));
        }
        if (shape instanceof Scalar scalar) {
            return scalar(scalar, at);
        }
        if (shape instanceof WellKnown wellKnown) {
            return wellKnown(wellKnown, at);
        }
        if (shape instanceof EnumType type) {
            String name = text(shape, at);
            for (Enum<?> constant : type.constants()) {
                if (constant.name().equals(name)) {
                    return constant;
                }
            }
            throw wrong(at, expected(shape));
        }
        MessageType message = (MessageType) shape;
        return switch (message.kind()) {
            case RECORD, CONSTRUCTED -> record(message, at);
            case BEAN -> bean(message, at);
            case ONEOF -> oneOf(message, at);
            case WRAPPER ->
                java.util.Objects.requireNonNull(field(message.fields().get(0), at));
            case PARAMETERS -> throw new IllegalStateException(message + " within a value");
        };
    }

    private Object scalar(Scalar scalar, String at) {
        return switch (scalar) {
            case BOOL -> bool(at);
            case BYTE -> (byte) integer(scalar, at, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case SHORT -> (short) integer(scalar, at, Short.MIN_VALUE, Short.MAX_VALUE);
            case INT -> (int) integer(scalar, at, Integer.MIN_VALUE, Integer.MAX_VALUE);
            case LONG -> integer(scalar, at, Long.MIN_VALUE, Long.MAX_VALUE);
            case CHAR -> {
                String text = text(scalar, at);
                if (text.length() != 1) {
                    throw wrong(at, expected(scalar));
                }
                yield text.charAt(0);
            }
            case FLOAT -> real(scalar, at, Float::valueOf);
            case DOUBLE -> real(scalar, at, Double::valueOf);
            case STRING -> {
                String text = text(scalar, at);
                if (text.codePoints().anyMatch(c -> c <= Character.MAX_VALUE && Character.isSurrogate((char) c))) {
                    throw wrong(at, "a string without half a surrogate pair, for which UTF-8 has no bytes");
                }
                yield text;
            }
            case BYTES -> parsed(scalar, at, JsonArguments::base64);
            case BIG_INTEGER -> {
                expect(JsonToken.VALUE_NUMBER_INT, at, expected(scalar));
                yield in.getBigIntegerValue();
            }
            case UUID ->
                parsed(scalar, at, text -> {
                    UUID uuid = UUID.fromString(text);
                    if (!uuid.toString().equalsIgnoreCase(text)) {
                        throw new IllegalArgumentException(text);
                    }
                    return uuid;
                });
            case URI -> parsed(scalar, at, URI::create);
        };
    }

    private Object wellKnown(WellKnown type, String at) {
        return switch (type) {
            case INSTANT -> parsed(type, at, JsonArguments::instant);
            case DATE -> parsed(type, at, JsonArguments::date);
            case DURATION -> parsed(type, at, Duration::parse);
            case LOCAL_DATE -> parsed(type, at, LocalDate::parse);
            case LOCAL_DATE_TIME -> parsed(type, at, LocalDateTime::parse);
            case LOCAL_TIME -> parsed(type, at, LocalTime::parse);
            case OFFSET_DATE_TIME -> parsed(type, at, OffsetDateTime::parse);
            case ZONED_DATE_TIME -> parsed(type, at, ZonedDateTime::parse);
            case DECIMAL -> {
                if (!isNumber()) {
                    throw wrong(at, expected(type));
                }
                BigDecimal number = decimal(in.getString());
                if (number == null || Math.abs((long) number.scale()) > Limits.STANDARD.scale()) {
                    throw wrong(at, expected(type));
                }
                yield number;
            }
        };
    }

    /** Returns the number; null if its exponent is beyond the range of a {@link BigDecimal}. */
    private static @Nullable BigDecimal decimal(String number) {
        try {
            return new BigDecimal(number);
        } catch (NumberFormatException e) {
            return null;
        }
    }

    /**
     * Decodes Base64, with or without padding. Bits that belong to no byte have to be zero, since they would not be
     * sent.
     */
    private static byte[] base64(String text) {
        byte[] bytes = Base64.getDecoder().decode(text);
        Base64.Encoder encoder = Base64.getEncoder();
        if (!encoder.encodeToString(bytes).equals(text)
                && !encoder.withoutPadding().encodeToString(bytes).equals(text)) {
            throw new IllegalArgumentException("bits at the end");
        }
        return bytes;
    }

    /**
     * Parses a point in time. A leap second is an error: {@link Instant} does not have it, and takes it for the second
     * before.
     */
    private static Instant instant(String text) {
        TemporalAccessor parsed = DateTimeFormatter.ISO_INSTANT.parse(text);
        if (parsed.query(DateTimeFormatter.parsedLeapSecond())) {
            throw new DateTimeException("a leap second");
        }
        return Instant.from(parsed);
    }

    private static Date date(String text) {
        Instant moment = instant(text);
        Date date = Date.from(moment);
        if (!date.toInstant().equals(moment)) {
            throw new DateTimeException("finer than a millisecond");
        }
        return date;
    }

    private Object bool(String at) {
        JsonToken token = in.currentToken();
        if (token != JsonToken.VALUE_TRUE && token != JsonToken.VALUE_FALSE) {
            throw wrong(at, expected(Scalar.BOOL));
        }
        return token == JsonToken.VALUE_TRUE;
    }

    private long integer(Scalar scalar, String at, long min, long max) {
        expect(JsonToken.VALUE_NUMBER_INT, at, expected(scalar));
        BigInteger number = in.getBigIntegerValue();
        if (number.bitLength() > 63 || number.longValue() < min || number.longValue() > max) {
            throw wrong(at, expected(scalar));
        }
        return number.longValue();
    }

    private boolean isNumber() {
        return in.currentToken() == JsonToken.VALUE_NUMBER_INT || in.currentToken() == JsonToken.VALUE_NUMBER_FLOAT;
    }

    /**
     * Reads a float or a double, also one that is not finite.
     *
     * @param nearest returns the number of the type that is nearest to the one that is written
     */
    private <N extends Number> N real(Scalar scalar, String at, Function<String, N> nearest) {
        if (!isNumber()) {
            if (in.currentToken() != JsonToken.VALUE_STRING || !NOT_FINITE.contains(in.getString())) {
                throw wrong(at, expected(scalar));
            }
            return nearest.apply(in.getString());
        }
        N number = nearest.apply(in.getString());
        if (!Double.isFinite(number.doubleValue())) {
            throw wrong(at, expected(scalar));
        }
        if (!isAsWritten(number, in.getString())) {
            throw wrong(at, expected(scalar) + "; the nearest is " + number);
        }
        return number;
    }

    /**
     * Whether the two numbers differ by at most half a unit of the last digit written, not counting zeros at the end.
     */
    private static boolean isAsWritten(Number number, String text) {
        BigDecimal written = decimal(text);
        if (written == null) {
            return false;
        }
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

    private String text(Shape shape, String at) {
        expect(JsonToken.VALUE_STRING, at, expected(shape));
        return in.getString();
    }

    private <T> T parsed(Shape shape, String at, Function<String, T> parser) {
        try {
            return parser.apply(text(shape, at));
        } catch (IllegalArgumentException | DateTimeException e) {
            throw wrong(at, expected(shape));
        }
    }

    /** Reads the members of an object. Each of them has to have one of these names, and to occur once. */
    private Map<String, Object> members(
            String at, String of, List<String> names, Function<String, @Nullable Object> value) {
        expect(JsonToken.START_OBJECT, at, "an object of " + listed(names));
        Map<String, Object> members = new LinkedHashMap<>();
        Set<String> met = new HashSet<>();
        while (in.nextToken() != JsonToken.END_OBJECT) {
            String name = in.currentName();
            if (!names.contains(name)) {
                throw new Mistake(at + ": no field " + Printable.clipped(name) + " in " + of
                        + Printable.nearest(name, names) + " (expected: " + listed(names) + ")");
            }
            if (!met.add(name)) {
                throw new Mistake(at + "." + name + ": stands there twice (expected: each field of " + of + " once)");
            }
            in.nextToken();
            members.put(name, value.apply(name));
        }
        return members;
    }

    private static String listed(List<String> names) {
        return names.isEmpty() ? "no fields" : String.join(", ", names);
    }

    private Map<String, Object> fields(MessageType message, String at) {
        List<String> names = message.fields().stream().map(FieldType::name).toList();
        return members(at, message.protoName(), names, name -> {
            FieldType field = message.fields().get(names.indexOf(name));
            return field(field, at + "." + name);
        });
    }

    private Object record(MessageType message, String at) {
        Map<String, Object> given = fields(message, at);
        @Nullable
        Object[] components = message.fields().stream()
                .map(field -> {
                    if (!given.containsKey(field.name()) && !hasNull(field)) {
                        throw new Mistake(at + ": field " + field.name() + " of " + message.protoName()
                                + " is missing (expected: " + expected(field) + ")");
                    }
                    return given.containsKey(field.name()) ? given.get(field.name()) : absent(field);
                })
                .toArray();
        Constructor<?> constructor = message.constructor();
        return invoke(message, at, constructor, () -> constructor.newInstance(components));
    }

    /** Makes a bean. A field that is not given keeps the value that the class gives it. */
    private Object bean(MessageType message, String at) {
        Map<String, Object> given = fields(message, at);
        Constructor<?> constructor = message.constructor();
        Object bean = invoke(message, at, constructor, constructor::newInstance);
        for (int i = 0; i < message.fields().size(); i++) {
            String name = message.fields().get(i).name();
            java.lang.reflect.Method setter = message.setters().get(i);
            if (given.containsKey(name)) {
                invoke(message, at, setter, () -> {
                    setter.invoke(bean, given.get(name));
                    return bean;
                });
            }
        }
        return bean;
    }

    private interface Making {
        Object make() throws ReflectiveOperationException;
    }

    /** Makes or changes an object, whose class may reject what it is given. */
    private static Object invoke(MessageType message, String at, AccessibleObject member, Making making) {
        try {
            member.setAccessible(true);
            return making.make();
        } catch (InvocationTargetException e) {
            throw new Mistake(at + ": " + message.protoName() + " refuses it: " + e.getCause());
        } catch (ReflectiveOperationException | InaccessibleObjectException e) {
            throw new Mistake(at + ": " + message.javaClass().getName() + " cannot be made: " + e);
        }
    }

    private Object oneOf(MessageType message, String at) {
        Map<String, Object> given = fields(message, at);
        if (given.size() != 1 || given.containsValue(null)) {
            throw new Mistake(at + ": " + given.size() + " cases of " + message.protoName() + " (expected: "
                    + expected(message) + ")");
        }
        return given.values().iterator().next();
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
        return new Mistake(at + ": " + value + " (expected: " + expected + ")");
    }

    private static String expected(FieldType field) {
        String one = expected(field.shape());
        return switch (field.holder()) {
            case PLAIN, NULLABLE, OPTIONAL -> hasNull(field) ? one + ", or null" : one;
            case LIST, SET -> "an array, each element " + one;
            case MAP ->
                isText(java.util.Objects.requireNonNull(field.key()))
                        ? "an object, each value " + one
                        : "an array of {\"key\": …, \"value\": …}";
        };
    }

    private static String expected(Shape shape) {
        if (shape instanceof Scalar scalar) {
            return switch (scalar) {
                case BOOL -> "true or false";
                case BYTE -> range(Byte.MIN_VALUE, Byte.MAX_VALUE);
                case SHORT -> range(Short.MIN_VALUE, Short.MAX_VALUE);
                case INT -> range(Integer.MIN_VALUE, Integer.MAX_VALUE);
                case LONG -> range(Long.MIN_VALUE, Long.MAX_VALUE);
                case BIG_INTEGER -> "an integer";
                case CHAR -> "a string of one character";
                case FLOAT ->
                    "a number up to 3.4e38 that a float holds to the last digit written, or \"NaN\", \"Infinity\", \"-Infinity\"";
                case DOUBLE ->
                    "a number up to 1.8e308 that a double holds to the last digit written, or \"NaN\", \"Infinity\", \"-Infinity\"";
                case STRING -> "a string";
                case BYTES -> "a string of Base64, its spare bits zero";
                case UUID -> "a string such as \"123e4567-e89b-12d3-a456-426614174000\"";
                case URI -> "a string such as \"https://example.com/a?b=c\"";
            };
        }
        if (shape instanceof WellKnown wellKnown) {
            return switch (wellKnown) {
                case DECIMAL ->
                    "a number of a scale from -" + Limits.STANDARD.scale() + " to " + Limits.STANDARD.scale();
                case INSTANT -> "a string such as \"2026-12-31T23:59:59Z\", no leap second";
                case DATE -> "a string such as \"2026-12-31T23:59:59.999Z\", to the millisecond, no leap second";
                case DURATION -> "a string such as \"PT1.5S\"";
                case LOCAL_DATE -> "a string such as \"2026-12-31\"";
                case LOCAL_DATE_TIME -> "a string such as \"2026-12-31T23:59:59\"";
                case LOCAL_TIME -> "a string such as \"23:59:59\"";
                case OFFSET_DATE_TIME -> "a string such as \"2026-12-31T23:59:59+01:00\"";
                case ZONED_DATE_TIME -> "a string such as \"2026-12-31T23:59:59+01:00[Europe/Paris]\"";
            };
        }
        if (shape instanceof EnumType type) {
            return "one of "
                    + Arrays.stream(type.constants())
                            .map(constant -> '"' + constant.name() + '"')
                            .collect(Collectors.joining(", "));
        }
        MessageType message = (MessageType) shape;
        List<String> names = message.fields().stream().map(FieldType::name).toList();
        return switch (message.kind()) {
            case WRAPPER -> expected(message.fields().get(0));
            case ONEOF -> "an object with one of " + listed(names);
            default -> "an object of " + message.protoName() + ": " + listed(names);
        };
    }

    private static String range(long min, long max) {
        return "an integer from " + min + " to " + max;
    }
}
