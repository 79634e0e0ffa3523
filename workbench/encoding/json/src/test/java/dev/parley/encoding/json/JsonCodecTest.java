package dev.parley.encoding.json;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.spi.CallException;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonCodecTest {
    private static final TestModelAllTypes ITEM = new TestModelAllTypes(
            "a\"\\\u0000é\uD83D\uDE00",
            true,
            255,
            LocalDateTime.of(2026, 11, 21, 0, 0, 0, 100),
            new BigDecimal("1.00"),
            0.1f,
            Integer.MIN_VALUE,
            Short.MIN_VALUE,
            Long.MAX_VALUE);

    record Nothing() {}

    @Test
    void propertiesStandInTheOrderOfTheRecord() {
        String json = new String(JsonCodec.encode(new TestModelAllTypesList(List.of(ITEM))), StandardCharsets.UTF_8);

        assertThat(json)
                .startsWith("{\"items\":[{\"textField\":")
                .contains("\"dateTimeField\":\"2026-11-21T00:00:00.0000001\",\"decimalField\":1.00,\"floatField\":0.1,")
                .endsWith("\"shortField\":-32768,\"longField\":9223372036854775807}]}");
    }

    @Test
    void comesBackEqualFromBytesAndFromAStream() {
        var sent = new GatheredTypes(List.of(
                new GatheredTypes.Part("m4", new TestModelAllTypesList(List.of(ITEM, ITEM))),
                new GatheredTypes.Part("m5", new TestModelAllTypesList(List.of()))));
        byte[] json = JsonCodec.encode(sent);

        assertThat(JsonCodec.decode(json, GatheredTypes.class)).isEqualTo(sent);
        assertThat(JsonCodec.decode(new ByteArrayInputStream(json), GatheredTypes.class))
                .isEqualTo(sent);
    }

    @Test
    void anEmptyRecordIsAnEmptyObject() {
        assertThat(new String(JsonCodec.encode(new Nothing()), StandardCharsets.UTF_8))
                .isEqualTo("{}");
        assertThat(JsonCodec.decode("{}".getBytes(StandardCharsets.UTF_8), Nothing.class))
                .isEqualTo(new Nothing());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void everyValueComesBackEqual(long seed) {
        Random random = new Random(seed);
        var sent = new TestModelAllTypesList(
                IntStream.range(0, 200).mapToObj(i -> item(random)).toList());

        assertThat(JsonCodec.decode(JsonCodec.encode(sent), TestModelAllTypesList.class))
                .isEqualTo(sent);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "null",
                "[]",
                "{}",
                "{\"textField\":null}",
                "{\"textField\":1}",
                "{\"textField\":\"a\",\"more\":1}",
                "{\"textField\":\"a\"} x",
                "{\"textField\":\"a\""
            })
    void whatIsNotExactlyTheRecordIsRefused(String json) {
        assertRefused(json, TestModelOnlyText.class);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"intField\":1.5",
                "\"intField\":\"1\"",
                "\"intField\":2147483648",
                "\"intField\":null",
                "\"intField\":true"
            })
    void aWholeNumberIsNothingElse(String property) {
        String right = new String(JsonCodec.encode(ITEM), StandardCharsets.UTF_8);
        assertThat(right).contains("\"intField\":-2147483648");

        assertRefused(right.replace("\"intField\":-2147483648", property), TestModelAllTypes.class);
    }

    private static void assertRefused(String json, Class<? extends Record> type) {
        assertThatThrownBy(() -> JsonCodec.decode(json.getBytes(StandardCharsets.UTF_8), type))
                .isInstanceOfSatisfying(
                        CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.PROTOCOL))
                .hasMessageStartingWith("not a " + type.getSimpleName());
    }

    /** Any value the types allow, not only those that the work sends. */
    private static TestModelAllTypes item(Random random) {
        return new TestModelAllTypes(
                random.ints(random.nextInt(20), 0, Character.MAX_CODE_POINT + 1)
                        .filter(c -> c < Character.MIN_SURROGATE || c > Character.MAX_SURROGATE)
                        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                        .toString(),
                random.nextBoolean(),
                random.nextInt(256),
                LocalDateTime.of(
                        random.nextInt(-999_999_999, 1_000_000_000),
                        random.nextInt(1, 13),
                        random.nextInt(1, 29),
                        random.nextInt(24),
                        random.nextInt(60),
                        random.nextInt(60),
                        random.nextInt(1_000_000_000)),
                new BigDecimal(new BigInteger(random.nextInt(200), random), random.nextInt(-50, 50)),
                Float.intBitsToFloat(random.nextInt()),
                random.nextInt(),
                (short) random.nextInt(),
                random.nextLong());
    }
}
