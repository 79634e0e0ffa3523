package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.UnknownFieldSet;
import dev.rpcx.LongForm;
import dev.rpcx.codec.CodecException.Code;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests hostile bytes and impossible values. The error is clear, and nothing beyond the limits is created. */
class MalformedTest {
    record Chain(int value, Chain next) {}

    record Empty() {}

    record Lists(List<Empty> empties, List<Integer> numbers, List<String> texts) {}

    record Texts(String text, byte[] bytes, Optional<String> optional) {}

    record Numbers(short small, byte tiny, char letter, BigDecimal decimal) {}

    record Named(UUID id) {}

    record Maps(
            Map<Integer, Empty> empties,
            Map<Integer, Lists> lists,
            Map<Integer, List<String>> containers,
            Map<Integer, BigDecimal> decimals,
            Map<Integer, Instant> moments,
            Map<Integer, Duration> durations,
            Map<Integer, LocalDate> dates,
            Map<Integer, LocalDateTime> times,
            Map<Integer, Animal> animals) {}

    sealed interface Animal permits Dog, Other {}

    record Dog() implements Animal {}

    @Unknown
    record Other() implements Animal {}

    enum Way {
        UP
    }

    sealed interface Strict permits Only {}

    record Only() implements Strict {}

    record ByName(
            Map<Integer, UUID> ids,
            Map<Integer, BigInteger> big,
            Map<Integer, Way> ways,
            Map<Integer, Checked> checked,
            Map<Integer, Strict> strict) {}

    record Moments(LocalTime time, OffsetDateTime offset, ZonedDateTime zoned, Date date, URI uri) {}

    record Late(@Field(4) Instant date) {}

    record Keyed(Map<LocalTime, OffsetDateTime> times, Map<URI, URI> links) {}

    record Checked(int age) {
        Checked {
            if (age < 0) {
                throw new IllegalArgumentException("age: " + age + " (expected: >= 0)");
            }
        }
    }

    private static final Schema SCHEMA = new Schema(LockFile.none());

    private static List<Codec<Object>> codecs(Class<?> type) {
        return List.of(
                Codecs.of(SCHEMA, Limits.STANDARD).value(type),
                Codecs.reflective(SCHEMA, Limits.STANDARD).value(type));
    }

    private static void refused(Class<?> type, byte[] bytes, Code code, String... words) {
        for (Codec<Object> codec : codecs(type)) {
            for (ByteBuf buffer : List.of(
                    Unpooled.wrappedBuffer(bytes), Unpooled.directBuffer().writeBytes(bytes))) {
                assertThatThrownBy(() -> codec.read(buffer))
                        .isInstanceOfSatisfying(
                                CodecException.class, e -> assertThat(e.code()).isEqualTo(code))
                        .message()
                        .contains(words);
                buffer.release();
            }
        }
    }

    private static byte[] bytes(int... values) {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (byte) values[i];
        }
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void cutAtEveryByteItIsReadOrRefusedAndNothingElse(long seed) {
        MessageType type = SCHEMA.value(AllTypes.Hello.class);
        byte[] whole = write(AllTypes.Hello.class, new RandomValues(seed).message(type, 2));
        List<Codec<Object>> codecs = codecs(AllTypes.Hello.class);
        for (int length = 0; length < Math.min(whole.length, 2_000); length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            for (Codec<Object> codec : codecs) {
                Throwable thrown = catchThrowable(() -> codec.read(Unpooled.wrappedBuffer(cut)));
                if (thrown != null) {
                    assertThat(thrown).as("cut at %s", length).isInstanceOf(CodecException.class);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void randomBytesAreReadOrRefusedAndNothingElse(long seed) {
        Random random = new Random(seed);
        MessageType type = SCHEMA.value(AllTypes.Hello.class);
        byte[] whole = write(AllTypes.Hello.class, new RandomValues(seed).message(type, 2));
        List<Codec<Object>> codecs = codecs(AllTypes.Hello.class);
        int rounds = Integer.getInteger("rpcx.fuzz.rounds", LongForm.of(5_000, 60_000));
        for (int i = 0; i < rounds; i++) {
            byte[] hostile = i % 2 == 0 ? whole.clone() : new byte[random.nextInt(100)];
            if (i % 2 == 1) {
                random.nextBytes(hostile);
            }
            for (int n = random.nextInt(4); n >= 0 && hostile.length > 0; n--) {
                hostile[random.nextInt(hostile.length)] = (byte) random.nextInt();
            }
            Throwable one = catchThrowable(() -> codecs.get(0).read(Unpooled.wrappedBuffer(hostile)));
            Throwable other = catchThrowable(() -> codecs.get(1).read(Unpooled.wrappedBuffer(hostile)));
            if (one != null) {
                assertThat(one).isInstanceOf(CodecException.class);
                assertThat(other).hasMessage(one.getMessage());
            } else {
                assertThat(other).isNull();
            }
        }
        LongForm.figure(
                2, "%d messages of random or changed bytes, seed %d: read, or refused with a code", rounds, seed);
    }

    private static byte[] write(Class<?> type, Object value) {
        ByteBuf out = Unpooled.buffer();
        codecs(type).get(0).write(value, out);
        return ByteBufUtil.getBytes(out);
    }

    /** Protobuf reads the default value, which for a message is one without any bytes. */
    @Test
    void anEntryOfAMapWithoutItsValueHasAnEmptyMessage() {
        byte[] bytes = new byte[9 * 4];
        for (int i = 0; i < 9; i++) {
            System.arraycopy(bytes(i + 1 << 3 | 2, 2, 8, 7), 0, bytes, 4 * i, 4);
        }
        for (Codec<Object> codec : codecs(Maps.class)) {
            assertThat(codec.read(Unpooled.wrappedBuffer(bytes)))
                    .isEqualTo(new Maps(
                            Map.of(7, new Empty()),
                            Map.of(7, new Lists(List.of(), List.of(), List.of())),
                            Map.of(7, List.of()),
                            Map.of(7, BigDecimal.ZERO),
                            Map.of(7, Instant.EPOCH),
                            Map.of(7, Duration.ZERO),
                            Map.of(7, LocalDate.EPOCH),
                            Map.of(7, LocalDateTime.of(1970, 1, 1, 0, 0)),
                            Map.of(7, new Other())));
        }
    }

    @Test
    void aTimeThatNoClockShowsIsRefused() {
        refused(Moments.class, bytes(10, 2, 8, 24), Code.MALFORMED, "Moments: 24 h, 0 min");
        refused(Moments.class, bytes(10, 2, 24, 60), Code.MALFORMED, "60 s");
        refused(Moments.class, bytes(10, 2, 10, 0), Code.MALFORMED, "wire type 2 for field 1 of a TimeOfDay");
        refused(Moments.class, bytes(18, 4, 16, 1, 24, 1), Code.MALFORMED, "a DateTime without an offset");
        refused(Moments.class, bytes(18, 8, 16, 1, 24, 1, 66, 0, 74, 0), Code.MALFORMED, "without an offset");
        refused(Moments.class, bytes(18, 8, 16, 1, 24, 1, 66, 2, 16, 1), Code.MALFORMED, "without an offset");
        refused(Moments.class, bytes(18, 6, 16, 13, 24, 1, 66, 0), Code.MALFORMED, "year 0, month 13, day 1");
        refused(Moments.class, bytes(18, 6, 16, 2, 24, 30, 66, 0), Code.MALFORMED, "month 2, day 30");
        refused(
                Moments.class,
                bytes(18, 10, 16, 1, 24, 1, 66, 4, 8, 0xb0, 0x96, 4),
                Code.MALFORMED,
                "an offset of 68400 s");
        refused(Moments.class, bytes(26, 5, 18, 3, 'X', '/', 'Y'), Code.MALFORMED, "a zone of 3 characters");
        refused(Moments.class, write(Late.class, new Late(Instant.MAX)), Code.MALFORMED, "for a date");
        refused(Moments.class, bytes(42, 3, 'a', ' ', 'b'), Code.MALFORMED, "a URI with a fault at character 1 of 3");
    }

    @Test
    void aTimeOfAnotherWriterIsRead() {
        ZonedDateTime epoch = ZonedDateTime.ofInstant(Instant.EPOCH, ZoneOffset.UTC);
        OffsetDateTime first = OffsetDateTime.of(0, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
        byte[] finer = write(Late.class, new Late(Instant.ofEpochSecond(-1, 999_999_999)));
        for (Codec<Object> codec : codecs(Moments.class)) {
            // a zone that is not there is UTC; an unknown field is passed over; a later offset replaces a zone
            assertThat(codec.read(Unpooled.wrappedBuffer(
                            bytes(10, 2, 40, 1, 18, 8, 16, 1, 24, 1, 74, 0, 66, 0, 26, 0, 42, 0))))
                    .isEqualTo(new Moments(LocalTime.MIDNIGHT, first, epoch, null, URI.create("")));
            assertThat(codec.read(Unpooled.wrappedBuffer(finer)))
                    .as("a date has milliseconds")
                    .isEqualTo(new Moments(null, null, null, new Date(-1), null));
        }
    }

    /** A map contains no null, and no other value stands for an absent one. */
    @Test
    void anEntryOfAMapWithoutAValueThatHasNoDefaultIsRefused() {
        refused(ByName.class, bytes(1 << 3 | 2, 2, 8, 7), Code.MALFORMED, "an entry of ids without a value");
        refused(ByName.class, bytes(2 << 3 | 2, 2, 8, 7), Code.MALFORMED, "an entry of big without a value");
        refused(ByName.class, bytes(3 << 3 | 2, 2, 8, 7), Code.MALFORMED, "an entry of ways without a value");
        refused(ByName.class, bytes(5 << 3 | 2, 2, 8, 7), Code.UNKNOWN_VALUE, "no case is set");
        refused(Keyed.class, bytes(10, 0), Code.MALFORMED, "a DateTime without an offset");
        refused(Keyed.class, bytes(10, 8, 18, 6, 16, 1, 24, 1, 66, 0), Code.MALFORMED, "entry of times without a key");
        refused(Keyed.class, bytes(18, 0), Code.MALFORMED, "an entry of links without a key");
        refused(Keyed.class, bytes(18, 2, 10, 0), Code.MALFORMED, "an entry of links without a value");
    }

    @Test
    void aLengthBeyondTheEndIsRefusedBeforeAnythingIsMade() {
        for (int tag : new int[] {10, 18, 26}) {
            byte[] hostile = bytes(tag, 0xff, 0xff, 0xff, 0x01, 1, 2, 3);
            refused(Lists.class, hostile, Code.MALFORMED, "Lists", "length");
            refused(Texts.class, hostile, Code.MALFORMED, "Texts", "length");
        }
        refused(Texts.class, bytes(10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), Code.MALFORMED, "-1");
        Codec<Object> codec = codecs(Texts.class).get(0);
        ByteBuf hostile = Unpooled.wrappedBuffer(bytes(10, 0xff, 0xff, 0xff, 0x01));
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long allocated = 0;
        for (int i = 0; i < 10; i++) {
            hostile.readerIndex(0);
            long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            try {
                codec.read(hostile);
            } catch (CodecException e) {
                allocated =
                        threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
            }
        }
        assertThat(allocated).as("4 MiB announced, 0 sent").isBetween(1L, 16_384L);
    }

    @Test
    void aWrongWireTypeIsRefusedByName() {
        refused(Chain.class, bytes(10, 0), Code.MALFORMED, "Chain.value", "wire type 2");
        refused(Chain.class, bytes(16, 0), Code.MALFORMED, "Chain.next", "wire type 0");
        refused(Texts.class, bytes(8, 0), Code.MALFORMED, "Texts.text");
        refused(Lists.class, bytes(21, 0, 0, 0, 0), Code.MALFORMED, "Lists.numbers");
        refused(Numbers.class, bytes(34, 2, 8, 0), Code.MALFORMED, "Decimal");
        refused(Texts.class, bytes(15), Code.MALFORMED, "Texts.text");
        refused(Texts.class, bytes(7, 0), Code.MALFORMED, "a tag of 7");
    }

    @Test
    void deepNestingIsRefusedAndNoStackOverflows() throws Exception {
        byte[] nested = {};
        for (int i = 0; i < 10_000; i++) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            CodedOutputStream coded = CodedOutputStream.newInstance(out);
            coded.writeBytes(2, ByteString.copyFrom(nested));
            coded.flush();
            nested = out.toByteArray();
        }
        refused(Chain.class, nested, Code.TOO_DEEP, "Chain", "100");
        byte[] groups = new byte[20_000];
        Arrays.fill(groups, (byte) (9 << 3 | 3));
        refused(Chain.class, groups, Code.TOO_DEEP, "100");
        Chain chain = null;
        for (int i = 0; i < 10_000; i++) {
            chain = new Chain(i, chain);
        }
        Chain deep = chain;
        for (Codec<Object> codec : codecs(Chain.class)) {
            ByteBuf out = Unpooled.buffer().writeByte(1);
            assertThatThrownBy(() -> codec.write(deep, out))
                    .isInstanceOfSatisfying(
                            CodecException.class, e -> assertThat(e.code()).isEqualTo(Code.TOO_DEEP));
            assertThat(out.writerIndex()).isEqualTo(1);
        }
        LongForm.figure(
                3, "10 000 messages within each other, and 20 000 groups: refused at a depth of 100, both ways");
    }

    @Test
    void aHundredMessagesInsideEachOtherAreFine() {
        Chain chain = null;
        for (int i = 0; i < 100; i++) {
            chain = new Chain(i, chain);
        }
        byte[] bytes = write(Chain.class, chain);
        assertThat(codecs(Chain.class).get(0).read(Unpooled.wrappedBuffer(bytes)))
                .isEqualTo(chain);
    }

    @Test
    void aMillionEmptyElementsAreRefused() {
        byte[] hostile = new byte[2_000_002];
        for (int i = 0; i < hostile.length; i += 2) {
            hostile[i] = 10;
        }
        refused(Lists.class, hostile, Code.TOO_LARGE, "elements");
    }

    @Test
    void aMessageBeyondTheLimitIsRefusedBothWays() {
        refused(Texts.class, new byte[(4 << 20) + 1], Code.TOO_LARGE, "4194304");
        for (Codec<Object> codec : codecs(Texts.class)) {
            for (ByteBuf out : List.of(Unpooled.buffer(), Unpooled.directBuffer())) {
                Object value = new Texts("", new byte[4 << 20], Optional.empty());
                assertThatThrownBy(() -> codec.write(value, out))
                        .isInstanceOfSatisfying(
                                CodecException.class, e -> assertThat(e.code()).isEqualTo(Code.TOO_LARGE));
                assertThat(out.writerIndex()).isZero();
                out.release();
            }
        }
    }

    @Test
    void aMessageOfExactlyTheLimitIsWritten() {
        // these have a tag, and a length of four bytes
        Texts ascii = new Texts("x".repeat((4 << 20) - 5), new byte[0], Optional.empty());
        Texts bytes = new Texts("", new byte[(4 << 20) - 5], Optional.empty());
        for (Texts texts : List.of(ascii, bytes)) {
            for (ByteBuf out : List.of(Unpooled.buffer(), Unpooled.directBuffer())) {
                Codec<Object> codec = codecs(Texts.class).get(0);
                codec.write(texts, out);
                assertThat(out.readableBytes()).isEqualTo(4 << 20);
                Texts read = (Texts) codec.read(out);
                assertThat(read.text()).isEqualTo(texts.text());
                assertThat(read.bytes()).isEqualTo(texts.bytes());
                out.release();
            }
        }
    }

    record Within(byte[] bytes) {}

    record Around(byte[] bytes, Within within) {}

    @Test
    void aUuidHasSixteenBytesAndNoOtherNumberOfThem() {
        for (int length : new int[] {0, 1, 15, 17}) {
            byte[] hostile = new byte[2 + length];
            hostile[0] = 10;
            hostile[1] = (byte) length;
            refused(Named.class, hostile, Code.MALFORMED, length + " bytes for a UUID (expected: 16)");
        }
    }

    /** A message remembers how many bytes the last length took. That must not make the next message too large. */
    @Test
    void aMessageOfExactlyTheLimitIsWrittenAfterAnyOther() {
        for (Codec<Object> codec : codecs(Around.class)) {
            for (ByteBuf out : List.of(Unpooled.buffer(), Unpooled.directBuffer())) {
                codec.write(new Around(new byte[0], new Within(new byte[3 << 20])), out);
                for (int missing = 0; missing < 8; missing++) {
                    out.clear();
                    // the outer message has a tag and a length of four bytes, and the inner one two tags and two
                    // lengths of one byte
                    codec.write(
                            new Around(new byte[(4 << 20) - 5 - 4 - 100 - missing], new Within(new byte[100])), out);
                    assertThat(out.readableBytes()).isEqualTo((4 << 20) - missing);
                    out.clear();
                    codec.write(new Around(new byte[0], new Within(new byte[3 << 20])), out);
                }
                out.clear();
                assertThatThrownBy(() -> codec.write(
                                new Around(new byte[(4 << 20) - 5 - 4 - 100 + 1], new Within(new byte[100])), out))
                        .isInstanceOf(CodecException.class);
                out.release();
            }
        }
    }

    @Test
    void textThatIsNoTextIsRefused() {
        refused(Texts.class, bytes(10, 1, 0xff), Code.MALFORMED, "UTF-8");
        refused(Texts.class, bytes(10, 2, 'a', 0xc3), Code.MALFORMED, "UTF-8");
        byte[] replacement = "\uFFFD".getBytes(StandardCharsets.UTF_8);
        assertThatCode(() -> codecs(Texts.class).get(0).read(Unpooled.wrappedBuffer(bytes(10, 3), replacement)))
                .doesNotThrowAnyException();
        Object half = new Texts("\uD83D", new byte[0], Optional.empty());
        assertThatThrownBy(() -> write(Texts.class, half)).hasMessageContaining("surrogate");
    }

    @Test
    void nullWhereProtobufHasNoneIsRefusedByName() {
        assertThatThrownBy(() -> write(Texts.class, new Texts(null, new byte[0], Optional.empty())))
                .hasMessageContaining("Texts.text");
        assertThatThrownBy(() -> write(Texts.class, new Texts("", null, Optional.empty())))
                .hasMessageContaining("Texts.bytes");
        assertThatThrownBy(() -> write(Lists.class, new Lists(List.of(), Arrays.asList(1, null), List.of())))
                .hasMessageContaining("Lists.numbers");
        assertThatThrownBy(() -> write(Lists.class, new Lists(null, List.of(), List.of())))
                .hasMessageContaining("Lists.empties");
    }

    @Test
    void numbersOutOfTheirTypesRangeAreRefused() {
        refused(Numbers.class, bytes(8, 0x80, 0x80, 2), Code.MALFORMED, "32768", "short");
        refused(Numbers.class, bytes(16, 0x80, 1), Code.MALFORMED, "128", "byte");
        refused(Numbers.class, bytes(24, 0x80, 0x80, 4), Code.MALFORMED, "65536", "char");
        // the scale is 2^30
        refused(Numbers.class, bytes(34, 9, 10, 1, 1, 16, 0x80, 0x80, 0x80, 0x80, 8), Code.TOO_LARGE, "scale");
        byte[] digits = new byte[3_000];
        ByteBuf long1 = Unpooled.wrappedBuffer(bytes(34, 0xbb, 0x17, 10, 0xb8, 0x17), digits);
        refused(Numbers.class, ByteBufUtil.getBytes(long1), Code.TOO_LARGE, "digits");
        assertThatThrownBy(
                        () -> write(Numbers.class, new Numbers((short) 0, (byte) 0, 'a', new BigDecimal("1E+999999"))))
                .hasMessageContaining("scale");
    }

    @Test
    void whatARecordRefusesIsSaidWithItsOwnWords() {
        byte[] minusOne = bytes(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
        refused(Checked.class, minusOne, Code.REFUSED, "Checked", "age: -1");
    }

    @Test
    void fieldsOfANewerVersionArePassedOver() throws Exception {
        UnknownFieldSet unknown = UnknownFieldSet.newBuilder()
                .addField(
                        1000,
                        UnknownFieldSet.Field.newBuilder()
                                .addVarint(-1)
                                .addFixed32(1)
                                .addFixed64(2)
                                .addLengthDelimited(ByteString.copyFromUtf8("new"))
                                .addGroup(UnknownFieldSet.newBuilder()
                                        .addField(
                                                1,
                                                UnknownFieldSet.Field.newBuilder()
                                                        .addVarint(1)
                                                        .build())
                                        .build())
                                .build())
                .build();
        List<byte[]> parts = new ArrayList<>(List.of(unknown.toByteArray(), write(Chain.class, new Chain(7, null))));
        for (Codec<Object> codec : codecs(Chain.class)) {
            ByteBuf both = Unpooled.wrappedBuffer(parts.get(0), parts.get(1), parts.get(0));
            assertThat(codec.read(both)).isEqualTo(new Chain(7, null));
        }
    }
}
