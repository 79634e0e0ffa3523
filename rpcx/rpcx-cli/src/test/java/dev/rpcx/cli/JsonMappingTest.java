package dev.rpcx.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.util.JsonFormat;
import com.google.type.DateTime;
import com.google.type.TimeOfDay;
import dev.rpcx.RPCXClient;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.ProtoImports;
import dev.rpcx.schema.Field;
import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
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
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.json.JsonMapper;

/** Compares the JSON of the command with that of Protobuf's own library, for all types that RPCX exports. */
class JsonMappingTest {
    enum Mood {
        UNKNOWN,
        GOOD,
        BAD
    }

    sealed interface Shape {}

    @Field(1)
    record Circle(@Field(1) double radius) implements Shape {}

    @Field(2)
    record Square(@Field(1) long side) implements Shape {}

    @Field(3)
    record Nothing() implements Shape {}

    record Key(@Field(1) int number, @Field(2) String text) {}

    record Everything(
            @Field(1) boolean flag,
            @Field(2) byte b,
            @Field(3) short s,
            @Field(4) char c,
            @Field(5) int number,
            @Field(6) long large,
            @Field(7) float single,
            @Field(8) double real,
            @Field(9) String text,
            @Field(10) byte[] bytes,
            @Field(11) BigInteger big,
            @Field(12) UUID uuid,
            @Field(13) BigDecimal decimal,
            @Field(14) Instant instant,
            @Field(15) Duration duration,
            @Field(16) LocalDate date,
            @Field(17) LocalDateTime dateTime,
            @Field(18) Mood mood,
            @Field(19) List<Integer> numbers,
            @Field(20) List<Double> reals,
            @Field(21) List<String> texts,
            @Field(22) List<List<Long>> lists,
            @Field(23) Set<Mood> moods,
            @Field(24) Map<String, Integer> byText,
            @Field(25) Map<Long, Mood> byNumber,
            @Field(26) Map<Boolean, Instant> byFlag,
            @Field(27) Map<Key, String> byKey,
            @Field(28) Integer box,
            @Field(29) Optional<String> perhaps,
            @Field(30) Optional<Key> key,
            @Field(31) Shape shape,
            @Field(32) List<Shape> shapes,
            @Field(33) Map<String, Everything> inner,
            @Field(34) List<Instant> instants,
            @Field(35) List<Duration> durations,
            @Field(36) List<Float> singles,
            @Field(37) List<Boolean> flags,
            @Field(38) Optional<Mood> perhapsMood,
            @Field(39) Date moment,
            @Field(40) LocalTime time,
            @Field(41) OffsetDateTime offset,
            @Field(42) ZonedDateTime zoned,
            @Field(43) URI uri,
            @Field(44) Map<URI, LocalTime> byUri,
            @Field(45) List<OffsetDateTime> offsets) {}

    @RPCXClient(remoteServerName = "json")
    interface Service {
        void take(Everything everything);
    }

    private static final JsonMapper JSON = JsonMapper.shared();

    private final Descriptor type = Descriptions.of(
                    new SchemaTool(System.out, System.err, getClass().getClassLoader())
                            .described(List.of(Service.class.getName())),
                    Map.of())
            .method("json/take")
            .getInputType();

    /** Returns a random message. Numbers are those at the edges of their types as often as any others. */
    private static DynamicMessage random(Descriptor type, Random random, int depth) {
        DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
        if (type.getFullName().startsWith("google.protobuf.")) {
            return time(message, type, random);
        }
        for (FieldDescriptor field : type.getFields()) {
            boolean isDeep = field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && depth > 3;
            boolean isTaken =
                    field.getRealContainingOneof() != null && message.hasOneof(field.getRealContainingOneof());
            if (random.nextInt(3) == 0 || isDeep || isTaken) {
                continue;
            }
            if (!field.isRepeated()) {
                message.setField(field, value(field, random, depth));
                continue;
            }
            for (int i = random.nextInt(4); i > 0; i--) {
                message.addRepeatedField(field, value(field, random, depth));
            }
        }
        return message.build();
    }

    private static DynamicMessage time(DynamicMessage.Builder message, Descriptor type, Random random) {
        boolean isDuration = type.getName().equals("Duration");
        long max = isDuration ? 315_576_000_000L : 253_402_300_799L;
        long min = isDuration ? -max : -62_135_596_800L;
        long[] seconds = {0, 1, -1, min, max, random.nextLong(min, max)};
        int[] nanos = {0, 1, 500_000_000, 1_000, 120_000, 999_999_999, random.nextInt(1_000_000_000)};
        long second = seconds[random.nextInt(seconds.length)];
        int nano = isDuration && Math.abs(second) == max ? 0 : nanos[random.nextInt(nanos.length)];
        return message.setField(type.findFieldByNumber(1), second)
                .setField(type.findFieldByNumber(2), isDuration && second < 0 ? -nano : nano)
                .build();
    }

    private static Object value(FieldDescriptor field, Random random, int depth) {
        return switch (field.getJavaType()) {
            case BOOLEAN -> random.nextBoolean();
            case INT -> new int[] {0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, random.nextInt()}[random.nextInt(6)];
            case LONG -> new long[] {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, random.nextLong()}[random.nextInt(6)];
            case FLOAT ->
                new float[] {
                            0,
                            -0f,
                            1.5f,
                            Float.MAX_VALUE,
                            Float.MIN_VALUE,
                            Float.NaN,
                            Float.NEGATIVE_INFINITY,
                            random.nextFloat()
                        }
                        [random.nextInt(8)];
            case DOUBLE ->
                new double[] {
                            0,
                            -0d,
                            100,
                            1e23,
                            Double.MAX_VALUE,
                            Double.MIN_VALUE,
                            Double.POSITIVE_INFINITY,
                            random.nextDouble()
                        }
                        [random.nextInt(8)];
            case STRING -> new String[] {"", "a", "\"\\\n\u0000<>&'", "ä😀", "NaN"}[random.nextInt(5)];
            case BYTE_STRING -> {
                byte[] bytes = new byte[random.nextInt(5)];
                random.nextBytes(bytes);
                yield com.google.protobuf.ByteString.copyFrom(bytes);
            }
            case ENUM -> {
                EnumDescriptor of = field.getEnumType();
                yield of.findValueByNumberCreatingIfUnknown(
                        random.nextInt(4) == 0
                                ? 1_000 + random.nextInt(5)
                                : of.getValues()
                                        .get(random.nextInt(of.getValues().size()))
                                        .getNumber());
            }
            case MESSAGE -> random(field.getMessageType(), random, depth + 1);
        };
    }

    private String ours(byte[] message) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        JsonReply.print(type, message, true, new PrintStream(out, true, StandardCharsets.UTF_8));
        return out.toString(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void whatIsWrittenIsWhatProtobufsLibraryWrites(long seed) throws Exception {
        Random random = new Random(seed);
        for (int i = 0; i < 250; i++) {
            DynamicMessage message = random(type, random, 0);
            String theirs =
                    JsonFormat.printer().alwaysPrintFieldsWithNoPresence().print(message);
            assertThat(JSON.readTree(ours(message.toByteArray()))).isEqualTo(JSON.readTree(theirs));
        }
    }

    /** Messages that stand one behind the other are one message. Source: Protobuf, "Encoding", "Last One Wins". */
    @ParameterizedTest
    @ValueSource(longs = {9, 10})
    void whatHasComeInPartsIsMergedAsProtobufsLibraryMergesIt(long seed) throws Exception {
        Random random = new Random(seed);
        int compared = 0;
        for (int i = 0; i < 250; i++) {
            byte[] parts = random(type, random, 0)
                    .toByteString()
                    .concat(random(type, random, 0).toByteString())
                    .toByteArray();
            String theirs;
            try {
                theirs = JsonFormat.printer()
                        .alwaysPrintFieldsWithNoPresence()
                        .print(DynamicMessage.parseFrom(type, parts));
            } catch (InvalidProtocolBufferException | IllegalArgumentException e) {
                // The seconds of one duration and the nanoseconds of another one may have two signs.
                continue;
            }
            assertThat(JSON.readTree(ours(parts))).isEqualTo(JSON.readTree(theirs));
            compared++;
        }
        assertThat(compared).isGreaterThan(20);
    }

    @Test
    void aKeyThatHasComeTwiceIsWrittenOnce() {
        FieldDescriptor field = type.findFieldByName("by_text");
        Descriptor entry = field.getMessageType();
        DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
        for (int value : new int[] {1, 2}) {
            message.addRepeatedField(
                    field,
                    DynamicMessage.newBuilder(entry)
                            .setField(entry.findFieldByNumber(1), "met")
                            .setField(entry.findFieldByNumber(2), value)
                            .build());
        }
        assertThat(ours(message.build().toByteArray()))
                .containsOnlyOnce("\"met\"")
                .contains("\"met\":2");
    }

    /** Returns the message in which this field holds this value. */
    private static ByteString inside(FieldDescriptor field, ByteString value) {
        return UnknownFieldSet.newBuilder()
                .addField(
                        field.getNumber(),
                        UnknownFieldSet.Field.newBuilder()
                                .addLengthDelimited(value)
                                .build())
                .build()
                .toByteString();
    }

    @Test
    void aMessageThatIsTooDeepForJsonIsRefused() {
        FieldDescriptor field = type.findFieldByName("inner");
        FieldDescriptor value = field.getMessageType().findFieldByNumber(2);
        // Protobuf's library writes a message by recursion, for which the stack would not suffice.
        ByteString deep = ByteString.EMPTY;
        for (int i = 0; i < 600; i++) {
            deep = inside(field, inside(value, deep));
        }
        byte[] message = deep.toByteArray();
        assertThatThrownBy(() -> ours(message))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("too deep");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "2026-11-30t12:00:00Z",
                "2026-11-30T12:00:00z",
                "2026-11-30T24:00:00Z",
                "2026-11-30T12:00:00+02:00:30",
                "2026-11-30T12:00:00+02",
                "2026-11-30T12:00Z",
                "2026-11-30 12:00:00Z",
                "+2026-11-30T12:00:00Z",
                "2026-11-30T12:00:00",
                "2026-02-30T12:00:00Z"
            })
    void whatIsNoTimeOfRfc3339IsRefused(String time) {
        assertThatThrownBy(() -> JsonRequest.read("{\"instant\":\"" + time + "\"}", type))
                .isInstanceOf(Mistake.class)
                .hasMessageContaining("instant");
    }

    @ParameterizedTest
    @ValueSource(longs = {5, 6, 7, 8})
    void whatIsReadIsWhatProtobufsLibraryReads(long seed) throws Exception {
        Random random = new Random(seed);
        for (int i = 0; i < 250; i++) {
            DynamicMessage message = unique(random(type, random, 0));
            String json = JsonFormat.printer().print(message);
            assertThat(DynamicMessage.parseFrom(type, JsonRequest.read(json, type)))
                    .isEqualTo(theirs(json));
            String named = JsonFormat.printer()
                    .preservingProtoFieldNames()
                    .omittingInsignificantWhitespace()
                    .print(message);
            assertThat(DynamicMessage.parseFrom(type, JsonRequest.read(named, type)))
                    .isEqualTo(theirs(named));
        }
    }

    /** Returns the message as it is read, which has one entry for each key of a map. */
    private static DynamicMessage unique(DynamicMessage message) throws InvalidProtocolBufferException {
        DynamicMessage.Builder unique = DynamicMessage.newBuilder(message.getDescriptorForType());
        JsonFormat.parser().merge(JsonFormat.printer().print(message), unique);
        return unique.build();
    }

    private DynamicMessage theirs(String json) throws InvalidProtocolBufferException {
        DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
        JsonFormat.parser().merge(json, message);
        return message.build();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{}",
                "{\"number\":null,\"shape\":null,\"numbers\":null,\"byText\":null,\"instant\":null}",
                "{\"number\":\"7\",\"large\":7,\"real\":\"1e2\",\"single\":\"NaN\",\"numbers\":[1.0,\"2\",3e0]}",
                "{\"mood\":2,\"moods\":[\"MOOD_BAD\",77]}",
                "{\"bytes\":\"-_8\"}",
                "{\"instant\":\"2026-11-30T12:00:00.5+02:00\",\"duration\":\"-1.5s\"}",
                "{\"byFlag\":{\"true\":\"1970-01-01T00:00:00Z\"},\"byNumber\":{\"-9223372036854775808\":\"MOOD_BAD\"}}",
                "{\"shape\":{\"nothing\":{}},"
                        + "\"shapes\":[{\"circle\":{}},{\"square\":{\"side\":\"9223372036854775807\"}}]}",
                "{\"moment\":\"2026-11-30T12:00:00.5+02:00\",\"time\":{\"hours\":23},\"uri\":\"a:b\"}",
                "{\"offset\":{\"year\":2026,\"utc_offset\":\"3600s\"},\"offsets\":[{\"timeZone\":{\"id\":\"UTC\"}}]}",
                "{\"zoned\":{\"time\":\"2026-11-30T12:00:00Z\",\"zone\":\"Europe/Paris\"}}",
                "{\"byUri\":[{\"key\":\"a:b\",\"value\":{\"minutes\":5}},{\"key\":\"a:b\"}]}",
                "{\"perhaps_mood\":\"MOOD_UNKNOWN\",\"perhaps\":\"\",\"box\":0}",
            })
    void theOtherFormsOfAValueMeanTheSameToBoth(String json) throws Exception {
        assertThat(DynamicMessage.parseFrom(type, JsonRequest.read(json, type))).isEqualTo(theirs(json));
    }

    /** The messages that RPCX has beside Protobuf's own stand in a file of its jar. */
    @Test
    void theTypesOfRpcxAreThoseOfItsFile() throws IOException {
        try (InputStream file = ProtoFile.class.getResourceAsStream("/" + ProtoFile.TYPES)) {
            assertThat(members(new String(file.readAllBytes(), StandardCharsets.UTF_8)))
                    .isNotEmpty()
                    .isEqualTo(members(ProtoImports.TYPES));
        }
    }

    /** This tool does without the library that has the messages of Google beside Protobuf's own. */
    @Test
    void theTypesOfGoogleAreThoseOfItsLibrary() {
        assertThat(members(ProtoImports.TIME_OF_DAY))
                .contains("message TimeOfDay {")
                .isEqualTo(members(TimeOfDay.getDescriptor().getFile()));
        assertThat(members(ProtoImports.DATE_TIME))
                .contains("message DateTime {", "oneof time_offset {")
                .isEqualTo(members(DateTime.getDescriptor().getFile()));
        assertThat(ProtoImports.TIME_OF_DAY.getName())
                .isEqualTo(TimeOfDay.getDescriptor().getFile().getName());
        assertThat(ProtoImports.DATE_TIME.getName())
                .isEqualTo(DateTime.getDescriptor().getFile().getName());
    }

    private static List<String> members(FileDescriptor file) {
        return members(ProtoFile.text(file.toProto()));
    }

    private static List<String> members(String proto) {
        return proto.lines()
                .map(String::strip)
                .filter(line -> line.matches("message .*|oneof .*|[\\w.]+ \\w+ = \\d+;"))
                .toList();
    }
}
