package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RoundTripTest {
    enum Colour {
        RED,
        GREEN,
        UNKNOWN
    }

    sealed interface Figure permits Circle, Square, Other {}

    record Circle(double radius) implements Figure {}

    record Square(int side, List<Figure> inside) implements Figure {}

    @Unknown
    record Other() implements Figure {}

    record Pair<A, B>(A first, B second) {}

    private record Everything(
            @Field(1) boolean bool,
            @Field(2) byte int8,
            @Field(3) short int16,
            @Field(4) char char16,
            @Field(5) int int32,
            @Field(6) long int64,
            @Field(7) float float32,
            @Field(8) double float64,
            @Field(9) String text,
            @Field(10) byte[] bytes,
            @Field(11) Boolean boxedBool,
            @Field(12) Integer boxed,
            @Field(13) Optional<String> optional,
            @Field(14) List<Integer> ints,
            @Field(15) Set<String> strings,
            @Field(16) Map<String, Pair<Integer, String>> map,
            @Field(17) List<List<String>> nested,
            @Field(18) Colour colour,
            @Field(19) Figure figure,
            @Field(20) BigDecimal decimal,
            @Field(21) BigInteger big,
            @Field(22) Instant instant,
            @Field(23) Duration duration,
            @Field(24) LocalDate date,
            @Field(25) LocalDateTime dateTime,
            @Field(300) UUID uuid) {}

    interface Service {
        CompletionStage<Everything> call(String name, int count, List<Pair<String, Long>> pairs);

        String hello(String name);

        void nothing();

        Pair<String, String> swap(Pair<String, String> pair);
    }

    static Method method(Class<?> type, String name) {
        for (Method method : type.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                return method;
            }
        }
        throw new AssertionError(name);
    }

    private static Everything everything() {
        return new Everything(
                true,
                (byte) -1,
                (short) -300,
                'ä',
                Integer.MIN_VALUE,
                Long.MAX_VALUE,
                -0f,
                Math.PI,
                "Grüße 🙂",
                new byte[] {1, 2},
                false,
                0,
                Optional.of(""),
                IntStream.range(-500, 500).boxed().toList(),
                Set.of("a", "b"),
                Map.of("k", new Pair<>(null, "v"), "", new Pair<>(7, "")),
                List.of(List.of("x", "y"), List.of()),
                Colour.GREEN,
                new Square(3, List.of(new Circle(1), new Square(0, List.of()))),
                new BigDecimal("-12345.6700"),
                new BigInteger("123456789012345678901234567890"),
                Instant.parse("1969-12-31T23:59:59.5Z"),
                Duration.ofMillis(-1500),
                LocalDate.of(1969, 7, 20),
                LocalDateTime.of(2026, 11, 1, 12, 0, 0, 5),
                UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"));
    }

    @Test
    void everyTypeComesBack() {
        Codec<Object> codec = Codecs.standard(RoundTripTest.class).result(method(Service.class, "call"));
        for (ByteBuf buffer : List.of(Unpooled.buffer(0), Unpooled.directBuffer())) {
            buffer.writeZero(3).skipBytes(3);
            codec.write(everything(), buffer);
            Everything back = (Everything) codec.read(buffer);
            assertThat(back).usingRecursiveComparison().isEqualTo(everything());
            assertThat(buffer.isReadable()).isFalse();
            buffer.release();
        }
    }

    record Times(
            @Field(1) Instant instant,
            @Field(2) Duration duration,
            @Field(3) LocalDateTime clock,
            @Field(4) LocalDate date) {}

    interface Clock {
        Times times();
    }

    /**
     * Returns a message with this time in this field, for the largest and smallest times that the page on the schema
     * names, and for times beyond them.
     */
    private static ByteBuf times(int field, long seconds, long nanos) {
        ByteBuf time = Unpooled.buffer().writeByte(1 << 3);
        varint(time, field == 4 ? seconds << 1 ^ seconds >> 63 : seconds);
        if (nanos != 0) {
            varint(time.writeByte(2 << 3), nanos);
        }
        ByteBuf out = Unpooled.buffer().writeByte(field << 3 | 2).writeByte(time.readableBytes());
        return out.writeBytes(time);
    }

    private static void varint(ByteBuf out, long value) {
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            out.writeByte((int) (rest & 0x7F) | 0x80);
            rest >>>= 7;
        }
        out.writeByte((int) rest);
    }

    @Test
    void momentsAndSpansReachAsFarAsThePageSays() {
        Codec<Object> codec = Codecs.standard(RoundTripTest.class).result(method(Clock.class, "times"));
        for (Times last : List.of(
                new Times(Instant.MIN, Duration.ofSeconds(Long.MIN_VALUE), LocalDateTime.MIN, LocalDate.MIN),
                new Times(
                        Instant.MAX,
                        Duration.ofSeconds(Long.MAX_VALUE, 999_999_999),
                        LocalDateTime.MAX,
                        LocalDate.MAX))) {
            ByteBuf buffer = Unpooled.buffer();
            codec.write(last, buffer);
            assertThat(codec.read(buffer)).isEqualTo(last);
        }
        long[][] within = {
            {1, -31557014167219200L, 0},
            {1, 31556889864403199L, 999_999_999},
            {1, -1, 999_999_999},
            {2, Long.MIN_VALUE, 0},
            {2, Long.MAX_VALUE, 999_999_999},
            {2, 0, -999_999_999},
            {2, 0, 1},
            {3, -31557014135596800L, 0},
            {3, 31556889832780799L, 999_999_999},
            {4, -365243219162L, 0},
            {4, 365241780471L, 0}
        };
        for (long[] each : within) {
            assertThat(codec.read(times((int) each[0], each[1], each[2]))).isNotNull();
        }
        long[][] beyond = {
            {1, -31557014167219201L, 0},
            {1, 31556889864403200L, 0},
            {1, 0, -1},
            {1, 0, 1_000_000_000},
            {2, Long.MIN_VALUE, -1},
            {2, 1, -1},
            {2, -1, 1},
            {2, 0, -1_000_000_000},
            {2, 0, 1_000_000_000},
            {3, -31557014135596801L, 0},
            {3, 31556889832780800L, 0},
            {3, 0, -1},
            {4, -365243219163L, 0},
            {4, 365241780472L, 0}
        };
        for (long[] each : beyond) {
            assertThatThrownBy(() -> codec.read(times((int) each[0], each[1], each[2])))
                    .as("field %d, %d and %d", each[0], each[1], each[2])
                    .isInstanceOf(CodecException.class);
        }
    }

    @Test
    void parametersComeBack() {
        Codec<Object[]> codec = Codecs.standard(RoundTripTest.class).parameters(method(Service.class, "call"));
        ByteBuf buffer = Unpooled.buffer();
        Object[] values = {"x".repeat(10_000), 7, Collections.nCopies(3, new Pair<>("a", 5L))};
        codec.write(values, buffer);
        assertThat(codec.read(buffer)).isEqualTo(values);
    }

    @Test
    void aRecordAloneIsTheMessageItself() {
        Codec<Object[]> codec = Codecs.standard(RoundTripTest.class).parameters(method(Service.class, "swap"));
        ByteBuf buffer = Unpooled.buffer();
        codec.write(new Object[] {new Pair<>("a", "b")}, buffer);
        assertThat(buffer.readableBytes()).isEqualTo(6);
        assertThat(codec.read(buffer)).containsExactly(new Pair<>("a", "b"));
    }

    @Test
    void nothingIsNoBytes() {
        Codecs codecs = Codecs.standard(RoundTripTest.class);
        ByteBuf buffer = Unpooled.buffer();
        codecs.result(method(Service.class, "nothing")).write(null, buffer);
        codecs.parameters(method(Service.class, "nothing")).write(null, buffer);
        assertThat(buffer.readableBytes()).isZero();
        assertThat(codecs.parameters(method(Service.class, "nothing")).read(buffer))
                .isEmpty();
        assertThat(codecs.result(method(Service.class, "nothing")).read(buffer)).isNull();
    }

    @Test
    void clientsAndServersOfOneClassPathShareTheirCodecs() throws Exception {
        Codecs codecs = Codecs.standard(RoundTripTest.class);
        assertThat(Codecs.standard(RoundTripTest.class)).isSameAs(codecs);
        Method call = method(Service.class, "call");
        assertThat(codecs.parameters(call)).isSameAs(codecs.parameters(call));
        assertThat(codecs.result(call)).isSameAs(codecs.result(call));
        assertThat(codecs.value(AllTypes.Item.class)).isSameAs(codecs.value(AllTypes.Item.class));

        Thread thread = Thread.currentThread();
        ClassLoader own = thread.getContextClassLoader();
        try {
            thread.setContextClassLoader(null);
            assertThat(Codecs.standard(RoundTripTest.class)).isSameAs(codecs);
        } finally {
            thread.setContextClassLoader(own);
        }
        // these codecs are of another class loader, which may have other lock files
        assertThat(Codecs.standard(String.class)).isNotSameAs(codecs);
    }

    @Test
    void manyThreadsShareACodec() throws Exception {
        Codec<Object> codec = Codecs.standard(RoundTripTest.class).result(method(Service.class, "call"));
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            List<Callable<Void>> tasks = Collections.nCopies(8, () -> {
                for (int i = 0; i < 500; i++) {
                    ByteBuf buffer = i % 2 == 0 ? Unpooled.buffer() : Unpooled.directBuffer();
                    codec.write(everything(), buffer);
                    assertThat(((Everything) codec.read(buffer)).figure())
                            .isEqualTo(everything().figure());
                    buffer.release();
                }
                return null;
            });
            for (Future<Void> task : threads.invokeAll(tasks)) {
                task.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void writingAllocatesNothingAndReadingOnlyWhatIsRead() {
        Codec<Object> codec = Codecs.standard(RoundTripTest.class).value(AllTypes.Item.class);
        AllTypes.Item item = new AllTypes.Item(
                "text",
                true,
                255,
                LocalDateTime.of(2026, 11, 1, 12, 0),
                new BigDecimal("12.50"),
                1f,
                -1,
                (short) 2,
                3L);
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        ByteBuf buffer = Unpooled.buffer(256);
        long written = Long.MAX_VALUE;
        long read = Long.MAX_VALUE;
        for (int i = 0; i < 5_000; i++) {
            long before = threads.getThreadAllocatedBytes(thread);
            codec.write(item, buffer.clear());
            long between = threads.getThreadAllocatedBytes(thread);
            codec.read(buffer);
            written = Math.min(written, between - before);
            read = Math.min(read, threads.getThreadAllocatedBytes(thread) - between);
        }
        // one BigDecimal is allocated between a decimal and its digits, until the second compiler removes it
        assertThat(written).isLessThanOrEqualTo(64);
        assertThat(read).isLessThanOrEqualTo(320);
    }
}
