package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.internal.schema.WellKnown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.management.ManagementFactory;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests how much memory a reader asks for before it creates objects. This is compared with what the virtual machine
 * says that it has allocated.
 */
class MemoryTest {
    record Point(int x, int y) {}

    record Named(String first, String second, List<String> others) {}

    record Numbers(List<Integer> all) {}

    record Distinct(Set<Integer> all) {}

    record Counts(Map<Integer, Integer> all) {}

    record Points(List<Point> all) {}

    record Names(List<Named> all) {}

    record Text(String text) {}

    record Primitives(boolean a, byte b, short c, char d, int e, long f, float g, double h) {}

    private static final int MANY = 100_000;

    private static Set<Integer> ints() {
        return IntStream.range(0, MANY).boxed().collect(Collectors.toSet());
    }

    enum Whole {
        NUMBERS(new Numbers(List.copyOf(ints()))),
        DISTINCT(new Distinct(ints())),
        COUNTS(new Counts(ints().stream().collect(Collectors.toMap(i -> i, i -> i)))),
        POINTS(new Points(ints().stream().map(i -> new Point(i, i)).toList())),
        NAMES(new Names(ints().stream()
                .map(i -> new Named("a", "b" + i, List.of("c")))
                .limit(20_000)
                .toList())),
        TEXT(new Text("x".repeat(1_000_000))),
        LATIN_TEXT(new Text("é".repeat(1_000_000))),
        CYRILLIC_TEXT(new Text("ж".repeat(1_000_000))),
        CHINESE_TEXT(new Text("字".repeat(1_000_000))),
        TEXT_OF_PAIRS(new Text("😀".repeat(500_000))),
        TEXT_WIDENED_BY_ONE(new Text("x".repeat(1_000_000) + "ж"));

        final Object value;

        Whole(Object value) {
            this.value = value;
        }
    }

    private static final Schema SCHEMA = new Schema(LockFile.none());

    private static Codec<Object> codec(Type type) {
        return Codecs.reflective(SCHEMA, Limits.STANDARD).value(type);
    }

    private static ByteBuf written(Codec<Object> codec, Object value) {
        ByteBuf bytes = Unpooled.buffer();
        codec.write(value, bytes);
        return bytes;
    }

    /** The value that has been read, the bytes that were requested, and the bytes that were allocated. */
    private record Reading(Object value, long asked, long allocated) {
        /**
         * Checks the estimate. Tables and lists that grow are allocated more than once, and the old ones become
         * garbage.
         */
        void holds() {
            assertThat(asked).isBetween(allocated / 3, 3 * allocated);
        }
    }

    private static Reading reading(Codec<Object> codec, ByteBuf bytes) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        codec.read(bytes.duplicate());
        AtomicLong asked = new AtomicLong();
        long before = threads.getCurrentThreadAllocatedBytes();
        Object read = codec.read(bytes.duplicate(), more -> asked.addAndGet(more) > 0);
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;
        return new Reading(read, asked.get(), allocated);
    }

    @ParameterizedTest
    @EnumSource(Whole.class)
    void whatIsAskedForIsAboutWhatIsAllocated(Whole whole) {
        Codec<Object> codec = codec(whole.value.getClass());
        Reading reading = reading(codec, written(codec, whole.value));
        assertThat(reading.value).isEqualTo(whole.value);
        reading.holds();
    }

    // ---- every type of value, held in every way

    enum Mood {
        UNKNOWN,
        GOOD
    }

    record Plain<T>(T value) {}

    record Nullables<T>(@org.jspecify.annotations.Nullable T value) {}

    record Optionals<T>(Optional<T> value) {}

    record Lists<T>(List<T> value) {}

    record Sets<T>(Set<T> value) {}

    record Maps<T>(Map<T, T> value) {}

    private static final int SOME = 20_000;

    /** The least number of values that makes a set of its own, apart from the limits. */
    private static final int FEW = 1_000;

    private record Generic(Class<?> raw, List<Type> arguments) implements ParameterizedType {
        static Type of(Class<?> raw, Type... arguments) {
            return new Generic(raw, List.of(arguments));
        }

        @Override
        public Type[] getActualTypeArguments() {
            return arguments.toArray(new Type[0]);
        }

        @Override
        public Type getRawType() {
            return raw;
        }

        @Override
        public Type getOwnerType() {
            return raw.getDeclaringClass();
        }

        @Override
        public String toString() {
            return raw.getSimpleName() + arguments;
        }
    }

    /**
     * A type of values that the codec knows.
     *
     * @param distinct how many different values {@code make} returns
     * @param isKey whether values can be elements of a set
     */
    private record Values(String name, Class<?> type, int distinct, boolean isKey, IntFunction<Object> make) {
        static Values of(String name, Class<?> type, IntFunction<Object> make) {
            return new Values(name, type, Integer.MAX_VALUE, true, make);
        }

        static Values few(String name, Class<?> type, int distinct, IntFunction<Object> make) {
            return new Values(name, type, distinct, true, make);
        }

        Object at(int i) {
            return make.apply(i);
        }
    }

    /**
     * Returns values for a scalar. The switch has no {@code default}, so a new scalar needs its values here, and
     * thereby an estimate.
     */
    private static Values of(Scalar scalar) {
        String name = scalar.name();
        return switch (scalar) {
            case BOOL -> Values.few(name, Boolean.class, 2, i -> i % 2 == 0);
            case BYTE -> Values.few(name, Byte.class, 256, i -> (byte) i);
            case SHORT -> Values.of(name, Short.class, i -> (short) (i + FEW));
            case CHAR -> Values.of(name, Character.class, i -> (char) (i + FEW));
            case INT -> Values.of(name, Integer.class, i -> i + FEW);
            case LONG -> Values.of(name, Long.class, i -> (long) i + FEW);
            case FLOAT -> Values.of(name, Float.class, i -> (float) i);
            case DOUBLE -> Values.of(name, Double.class, i -> (double) i);
            case STRING -> Values.of(name, String.class, i -> "t" + i);
            case BYTES -> new Values(name, byte[].class, Integer.MAX_VALUE, false, i -> new byte[] {1, 2, 3, 4});
            case BIG_INTEGER -> Values.of(name, BigInteger.class, i -> BigInteger.valueOf(i + FEW));
            case UUID -> Values.of(name, UUID.class, i -> new UUID(i, i));
            case URI -> Values.of(name, URI.class, i -> URI.create("http://host/path?" + i));
        };
    }

    private static Values of(WellKnown wellKnown) {
        String name = wellKnown.name();
        return switch (wellKnown) {
            case INSTANT -> Values.of(name, Instant.class, i -> Instant.ofEpochSecond(i, 1));
            case DURATION -> Values.of(name, Duration.class, i -> Duration.ofSeconds(i, 1));
            case DECIMAL -> Values.of(name, BigDecimal.class, i -> BigDecimal.valueOf(i + FEW, 2));
            case LOCAL_DATE -> Values.of(name, LocalDate.class, i -> LocalDate.ofEpochDay(i + 1));
            case LOCAL_DATE_TIME ->
                Values.of(name, LocalDateTime.class, i -> LocalDateTime.ofEpochSecond(i, 1, ZoneOffset.UTC));
            case DATE -> Values.of(name, Date.class, i -> new Date(i + 1));
            case LOCAL_TIME -> Values.of(name, LocalTime.class, i -> LocalTime.ofSecondOfDay(i + 1));
            case OFFSET_DATE_TIME ->
                Values.of(
                        name,
                        OffsetDateTime.class,
                        i -> OffsetDateTime.of(LocalDateTime.ofEpochSecond(i, 1, ZoneOffset.UTC), ZoneOffset.MAX));
            case ZONED_DATE_TIME ->
                Values.of(
                        name,
                        ZonedDateTime.class,
                        i -> ZonedDateTime.ofInstant(Instant.ofEpochSecond(i, 1), ZoneId.of("Europe/Paris")));
        };
    }

    private static List<Values> values() {
        List<Values> all = new ArrayList<>();
        for (Scalar each : Scalar.values()) {
            all.add(of(each));
        }
        for (WellKnown each : WellKnown.values()) {
            all.add(of(each));
        }
        all.add(Values.few("ENUM", Mood.class, 2, i -> Mood.values()[i % 2]));
        all.add(Values.of("MESSAGE", Point.class, i -> new Point(i, 1)));
        all.add(Values.few("EMPTY_MESSAGE", Point.class, 1, i -> new Point(0, 0)));
        all.add(Values.of("WIDE_TEXT", String.class, i -> "ж" + i));
        all.add(Values.of("EMPTY_TEXT", String.class, i -> ""));
        all.add(Values.of("WIDE_URI", URI.class, i -> URI.create("http://host/ж" + i)));
        ZoneOffset odd = ZoneOffset.ofTotalSeconds(1);
        all.add(Values.of(
                "ODD_OFFSET",
                OffsetDateTime.class,
                i -> OffsetDateTime.of(LocalDateTime.ofEpochSecond(i, 1, ZoneOffset.UTC), odd)));
        BigInteger large = BigInteger.ONE.shiftLeft(100);
        all.add(Values.of("LARGE_INTEGER", BigInteger.class, i -> large.add(BigInteger.valueOf(i))));
        all.add(Values.of("LARGE_DECIMAL", BigDecimal.class, i -> new BigDecimal(large.add(BigInteger.valueOf(i)), 3)));
        all.add(Values.of(
                "MIDNIGHT", LocalDateTime.class, i -> LocalDateTime.ofEpochSecond(86_400L * i, 0, ZoneOffset.UTC)));
        return all;
    }

    enum Held {
        IN_A_LIST,
        IN_A_SET,
        AS_A_KEY,
        AS_A_VALUE,
        IN_A_FIELD,
        IN_A_NULLABLE_FIELD,
        IN_AN_OPTIONAL,
        IN_A_SHORT_LIST,
        IN_A_SHORT_SET,
        IN_A_SHORT_MAP;

        boolean takes(Values values) {
            return switch (this) {
                case IN_A_SET, AS_A_KEY ->
                    values.isKey && values.distinct > SOME && !values.at(0).equals(values.at(1));
                case IN_A_SHORT_SET, IN_A_SHORT_MAP -> values.isKey;
                case IN_A_LIST, AS_A_VALUE, IN_A_FIELD, IN_A_NULLABLE_FIELD, IN_AN_OPTIONAL, IN_A_SHORT_LIST -> true;
            };
        }

        Type type(Class<?> of) {
            return switch (this) {
                case IN_A_LIST -> Generic.of(List.class, of);
                case IN_A_SET -> Generic.of(Set.class, of);
                case AS_A_KEY -> Generic.of(Map.class, of, Boolean.class);
                case AS_A_VALUE -> Generic.of(Map.class, Integer.class, of);
                case IN_A_FIELD -> Generic.of(List.class, Generic.of(Plain.class, of));
                case IN_A_NULLABLE_FIELD -> Generic.of(List.class, Generic.of(Nullables.class, of));
                case IN_AN_OPTIONAL -> Generic.of(List.class, Generic.of(Optionals.class, of));
                case IN_A_SHORT_LIST -> Generic.of(List.class, Generic.of(Lists.class, of));
                case IN_A_SHORT_SET -> Generic.of(List.class, Generic.of(Sets.class, of));
                case IN_A_SHORT_MAP -> Generic.of(List.class, Generic.of(Maps.class, of));
            };
        }

        Object hold(Values values) {
            Stream<Object> all = IntStream.range(0, SOME).mapToObj(values::at);
            return switch (this) {
                case IN_A_LIST -> all.toList();
                case IN_A_SET -> all.collect(Collectors.toCollection(LinkedHashSet::new));
                case AS_A_KEY -> {
                    Map<Object, Object> map = new LinkedHashMap<>();
                    all.forEach(each -> map.put(each, true));
                    yield map;
                }
                case AS_A_VALUE -> {
                    Map<Object, Object> map = new LinkedHashMap<>();
                    all.forEach(each -> map.put(map.size(), each));
                    yield map;
                }
                case IN_A_FIELD -> all.map(Plain::new).toList();
                case IN_A_NULLABLE_FIELD -> all.map(Nullables::new).toList();
                case IN_AN_OPTIONAL ->
                    all.map(each -> new Optionals<>(Optional.of(each))).toList();
                case IN_A_SHORT_LIST ->
                    all.map(each -> new Lists<>(List.of(each))).toList();
                // each of these costs far more memory than it has bytes, and any message may request a million bytes of
                // memory
                case IN_A_SHORT_SET ->
                    all.limit(FEW).map(each -> new Sets<>(Set.of(each))).toList();
                case IN_A_SHORT_MAP ->
                    all.limit(FEW).map(each -> new Maps<>(Map.of(each, each))).toList();
            };
        }
    }

    private record Case(Values values, Held held) {
        @Override
        public String toString() {
            return values.name + " " + held;
        }
    }

    static Stream<Case> everyTypeHeldInEveryWay() {
        return values().stream()
                .flatMap(values -> Stream.of(Held.values())
                        .filter(held -> held.takes(values))
                        .map(held -> new Case(values, held)));
    }

    @ParameterizedTest
    @MethodSource("everyTypeHeldInEveryWay")
    void ofEveryTypeWhatIsAskedForIsAboutWhatIsAllocated(Case each) {
        Object value = each.held.hold(each.values);
        Type type = each.held.type(each.values.type);
        for (Codecs codecs : List.of(Codecs.of(SCHEMA, Limits.STANDARD), Codecs.reflective(SCHEMA, Limits.STANDARD))) {
            Codec<Object> codec = codecs.value(type);
            Reading reading = reading(codec, written(codec, value));
            if (each.values.isKey) {
                assertThat(reading.value).isEqualTo(value);
            }
            reading.holds();
        }
    }

    /** A class with fields that are not components. */
    static class Cached {
        transient long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
    }

    static class Session extends Cached {
        private int number;
        private long q, r, s, t;

        public int getNumber() {
            return number;
        }

        public void setNumber(int number) {
            this.number = number;
        }
    }

    @Test
    void fieldsThatAreNoComponentsAreAskedForToo() {
        for (Codecs codecs : List.of(Codecs.of(SCHEMA, Limits.STANDARD), Codecs.reflective(SCHEMA, Limits.STANDARD))) {
            Codec<Object> codec = codecs.value(Generic.of(List.class, Session.class));
            reading(codec, written(codec, java.util.Collections.nCopies(FEW, new Session())))
                    .holds();
        }
    }

    @Test
    void primitivesLieInTheirRecord() {
        Codec<Object> codec = Codecs.of(SCHEMA, Limits.STANDARD).value(Generic.of(List.class, Primitives.class));
        Primitives one = new Primitives(true, (byte) 1, (short) 1, 'a', 1, 1, 1, 1);
        reading(codec, written(codec, java.util.Collections.nCopies(SOME, one))).holds();
    }

    /** A packed run without bytes also begins a list, although RPCX never writes one. */
    @Test
    void runsOfNothingAreAskedForToo() {
        for (Class<?> holder : List.of(Lists.class, Sets.class)) {
            ByteBuf bytes = Unpooled.buffer();
            for (int i = 0; i < 4 * FEW; i++) {
                bytes.writeByte(1 << 3 | 2).writeByte(2).writeByte(1 << 3 | 2).writeByte(0);
            }
            Codec<Object> codec =
                    Codecs.of(SCHEMA, Limits.STANDARD).value(Generic.of(List.class, Generic.of(holder, Integer.class)));
            Reading reading = reading(codec, bytes);
            assertThat((List<?>) reading.value).hasSize(4 * FEW);
            reading.holds();
        }
    }

    /** The shortest form of a value creates no object. Otherwise two bytes would become seventy. */
    @Test
    void aDateOfTwoBytesIsNoNewObject() {
        for (Class<?> type :
                List.of(LocalDate.class, LocalDateTime.class, LocalTime.class, Instant.class, Duration.class)) {
            Codec<Object> codec = codec(Generic.of(List.class, type));
            ByteBuf bytes = Unpooled.buffer();
            for (int i = 0; i < SOME; i++) {
                bytes.writeByte(1 << 3 | 2).writeByte(0);
            }
            List<?> read = (List<?>) reading(codec, bytes).value;
            assertThat(read.get(0)).isSameAs(read.get(SOME - 1));
        }
    }

    // ---- what is asked

    @Test
    void aSmallMessageAsksForNothing() {
        Codec<Object> codec = codec(Points.class);
        Points few = new Points(List.of(new Point(1, 2), new Point(3, 4)));
        assertThat(codec.read(written(codec, few), more -> {
                    throw new AssertionError(more + " bytes");
                }))
                .isEqualTo(few);
    }

    @Test
    void whatIsNotGrantedIsNotRead() {
        Codec<Object> codec = codec(Distinct.class);
        ByteBuf bytes = written(codec, new Distinct(ints()));
        AtomicLong asked = new AtomicLong();
        assertThatThrownBy(() -> codec.read(bytes.duplicate(), more -> asked.addAndGet(more) < 1 << 20))
                .isInstanceOfSatisfying(
                        CodecException.class,
                        refused -> assertThat(refused.code()).isEqualTo(CodecException.Code.NO_MEMORY));
        assertThat(asked.get()).isLessThan(2 << 20);
        assertThat(codec.read(bytes)).isEqualTo(new Distinct(ints()));
    }
}
