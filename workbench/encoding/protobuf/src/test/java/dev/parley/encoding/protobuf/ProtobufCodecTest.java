package dev.parley.encoding.protobuf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.Descriptors.MethodDescriptor;
import dev.parley.encoding.protobuf.values.DateTime;
import dev.parley.spi.CallException;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ProtobufCodecTest {
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void everyValueComesBackEqual(long seed) {
        Random random = new Random(seed);
        var list = new TestModelAllTypesList(
                IntStream.range(0, 200).mapToObj(i -> item(random)).toList());
        var text = new TestModelOnlyText(text(random));

        assertComesBack(list, TestModelAllTypesList.class);
        assertComesBack(text, TestModelOnlyText.class);
        assertComesBack(
                new GatheredText(List.of(new GatheredText.Part("m4", text), new GatheredText.Part("m5", text))),
                GatheredText.class);
        assertComesBack(
                new GatheredTypes(List.of(
                        new GatheredTypes.Part("m4", list),
                        new GatheredTypes.Part("m5", new TestModelAllTypesList(List.of())))),
                GatheredTypes.class);
    }

    @Test
    void theServiceInTheProtoFileIsTheContract() {
        var service = dev.parley.encoding.protobuf.messages.TestModelOnlyText.getDescriptor()
                .getFile()
                .findServiceByName("Messages");

        assertThat(service.getFullName()).isEqualTo("parley.messages.Messages");
        assertThat(service.getMethods().stream().map(MethodDescriptor::getName))
                .containsExactlyElementsOf(Messages.CONTRACT.operations().stream()
                        .map(Operation::name)
                        .toList());
        for (Operation<?, ?> operation : Messages.CONTRACT.operations()) {
            MethodDescriptor method = service.findMethodByName(operation.name());
            assertThat(method.getInputType())
                    .isEqualTo(ProtobufCodec.of(operation.request()).prototype().getDescriptorForType());
            assertThat(method.getOutputType())
                    .isEqualTo(ProtobufCodec.of(operation.reply()).prototype().getDescriptorForType());
        }
    }

    @Test
    void bytesThatAreNoSuchMessageAreRefused() {
        var codec = ProtobufCodec.of(TestModelAllTypesList.class);
        byte[] cut = {0x0a, 0x7f, 0x01};
        byte[] withoutDate = {0x0a, 0x00};

        assertThatThrownBy(() -> codec.decode(cut))
                .isInstanceOfSatisfying(
                        CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.PROTOCOL))
                .hasMessageStartingWith("not a TestModelAllTypesList: ");
        assertThatThrownBy(() -> codec.decode(withoutDate))
                .hasMessage("dateTimeField is missing (expected: always there)");
    }

    @Test
    void valuesThatTheContractDoesNotKnowAreRefused() {
        assertThatThrownBy(() -> Values.toDateTime(
                        DateTime.newBuilder().setNano(1_000_000_000).build()))
                .isInstanceOf(CallException.class)
                .hasMessageContaining("NanoOfSecond");
        assertThatThrownBy(() -> Values.toShort(40_000, "shortField"))
                .hasMessage("shortField: 40000 (expected: -32768 to 32767)");
    }

    @Test
    void aRecordOfNoContractIsNamed() {
        record Stranger() {}
        assertThatThrownBy(() -> ProtobufCodec.of(Stranger.class))
                .hasMessageContaining("Stranger has no Protobuf message");
    }

    private static <R extends Record> void assertComesBack(R sent, Class<R> type) {
        ProtobufCodec<R, ?> codec = ProtobufCodec.of(type);
        byte[] bytes = codec.encode(sent);

        assertThat(codec.decode(bytes)).isEqualTo(sent);
        assertThat(codec.encodedBytes(sent)).isEqualTo(bytes.length);
    }

    private static String text(Random random) {
        return random.ints(random.nextInt(20), 0, Character.MAX_CODE_POINT + 1)
                .filter(c -> c < Character.MIN_SURROGATE || c > Character.MAX_SURROGATE)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }

    /** Any value the types allow, not only those that the work sends. */
    private static TestModelAllTypes item(Random random) {
        return new TestModelAllTypes(
                text(random),
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
                new BigDecimal(new BigInteger(random.nextInt(200), random), random.nextInt()),
                Float.intBitsToFloat(random.nextInt()),
                random.nextInt(),
                (short) random.nextInt(),
                random.nextLong());
    }
}
