package dev.rpcx.internal.schema;

import java.util.Map;

/**
 * Makes the texts that say why a type cannot be mapped to Protobuf, and what to write in its place. {@link Schema} and
 * the annotation processor use this class, so that the compiler and the start refuse a type with the same words.
 */
public final class Refusals {
    /** Text for every array but {@code byte[]}. */
    public static final String ARRAY = "write it as a List (only byte[] is a value of its own)";

    /** Text for a class of collections or maps, such as {@code ArrayList}. */
    public static final String COLLECTION = "declare it as List, Set or Map";

    /** Text for an interface or an abstract class that is not sealed. */
    public static final String ABSTRACT = "it is abstract and not sealed, so its implementations are not known";

    /** Text for what is neither a class nor an array of classes, such as {@code ? super String}. */
    public static final String NO_CLASS = "expected a type whose components are known";

    /** Types of the JDK that many classes have, each with the type that is mapped and holds the same. */
    private static final Map<String, String> INSTEAD = Map.ofEntries(
            Map.entry("java.lang.CharSequence", "a String"),
            Map.entry("java.lang.Iterable", "a List"),
            Map.entry("java.lang.Number", "a long, a double or a BigDecimal"),
            Map.entry("java.lang.StringBuffer", "a String"),
            Map.entry("java.lang.StringBuilder", "a String"),
            Map.entry("java.io.File", "a String"),
            Map.entry("java.net.URL", "a URI"),
            Map.entry("java.nio.charset.Charset", "a String, its name"),
            Map.entry("java.nio.file.Path", "a String"),
            Map.entry("java.sql.Date", "a LocalDate"),
            Map.entry("java.sql.Time", "a LocalTime"),
            Map.entry("java.sql.Timestamp", "an Instant"),
            Map.entry("java.time.MonthDay", "a String"),
            Map.entry("java.time.OffsetTime", "a String"),
            Map.entry("java.time.Period", "a String"),
            Map.entry("java.time.Year", "an int"),
            Map.entry("java.time.YearMonth", "a String"),
            Map.entry("java.time.ZoneId", "a String, its id"),
            Map.entry("java.time.ZoneOffset", "a String, its id"),
            Map.entry("java.util.BitSet", "a byte[]"),
            Map.entry("java.util.Calendar", "a ZonedDateTime"),
            Map.entry("java.util.Currency", "a String, its code"),
            Map.entry("java.util.GregorianCalendar", "a ZonedDateTime"),
            Map.entry("java.util.Iterator", "a List"),
            Map.entry("java.util.Locale", "a String, its language tag"),
            Map.entry("java.util.Map.Entry", "a record of a key and a value"),
            Map.entry("java.util.OptionalDouble", "an Optional<Double>"),
            Map.entry("java.util.OptionalInt", "an Optional<Integer>"),
            Map.entry("java.util.OptionalLong", "an Optional<Long>"),
            Map.entry("java.util.TimeZone", "a String, its id"),
            Map.entry("java.util.concurrent.atomic.AtomicBoolean", "a boolean"),
            Map.entry("java.util.concurrent.atomic.AtomicInteger", "an int"),
            Map.entry("java.util.concurrent.atomic.AtomicLong", "a long"),
            Map.entry("java.util.regex.Pattern", "a String"),
            Map.entry("java.util.stream.Stream", "a List"));

    private Refusals() {}

    /** Returns whether a type belongs to the JDK, whose classes are never mapped by their getters and setters. */
    public static boolean isOfJdk(String name) {
        return name.startsWith("java.") || name.startsWith("javax.");
    }

    /**
     * Returns the text for a type of the JDK.
     *
     * @param name canonical name of the type
     */
    public static String ofJdk(String name) {
        if (name.equals("java.lang.Object")) {
            return "it may be anything (expected: a record or another type with known components)";
        }
        String instead = INSTEAD.get(name);
        return instead == null
                ? "expected a record, a class with accessors, an enum, a sealed interface, or one of the simple types"
                : "write it as " + instead;
    }

    /** Returns the text for an {@code Optional} that is an element, a key or a value of another container. */
    public static String optionalInside(String where) {
        return where + ": an Optional inside another container cannot be mapped";
    }

    /**
     * Returns the text for a {@code byte[]} that is an element of a set or a key of a map. Arrays with equal content
     * are not equal, so nobody could find an element or a key by its content.
     */
    public static String bytesAsKey(String where) {
        return where + ": a byte[] equals no other, so it is no element of a Set and no key of a"
                + " Map (expected: a String, or a record with an equals of its own)";
    }
}
