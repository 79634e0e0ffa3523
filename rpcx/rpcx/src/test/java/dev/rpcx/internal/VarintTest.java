package dev.rpcx.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Tests numbers of base 128 against those of protobuf-java. */
class VarintTest {
    private static long[] numbers() {
        return LongStream.concat(
                        LongStream.of(0, -1, Long.MAX_VALUE, Long.MIN_VALUE, Integer.MAX_VALUE, Integer.MIN_VALUE),
                        LongStream.range(1, 63)
                                .flatMap(bit -> LongStream.of((1L << bit) - 1, 1L << bit, (1L << bit) + 1)))
                .toArray();
    }

    private static byte[] byProtobuf(long number) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        CodedOutputStream coded = CodedOutputStream.newInstance(out);
        coded.writeUInt64NoTag(number);
        coded.flush();
        return out.toByteArray();
    }

    private static ByteBuf bytes(int... bytes) {
        ByteBuf out = Unpooled.buffer();
        Arrays.stream(bytes).forEach(out::writeByte);
        return out;
    }

    @Test
    void aNumberHasTheBytesThatProtobufGivesIt() throws IOException {
        for (long number : numbers()) {
            hasItsBytes(number);
        }
    }

    private static void hasItsBytes(long number) throws IOException {
        byte[] expected = byProtobuf(number);
        ByteBuf out = Unpooled.buffer();
        Varint.write(out, number);
        assertThat(ByteBufUtil.getBytes(out)).isEqualTo(expected);
        assertThat(Varint.size(number)).isEqualTo(expected.length);
        assertThat(Varint.read(out)).isEqualTo(number);
        assertThat(out.isReadable()).isFalse();
        if (number == (int) number && number >= 0) {
            byte[] array = new byte[12];
            assertThat(Varint.write(array, 2, (int) number)).isEqualTo(2 + expected.length);
            assertThat(Arrays.copyOfRange(array, 2, 2 + expected.length)).isEqualTo(expected);
        }
    }

    @Test
    void aNumberThatIsPaddedIsTheSameNumber() throws IOException {
        for (long number : numbers()) {
            isPadded(number);
        }
    }

    private static void isPadded(long number) throws IOException {
        for (int bytes = Varint.size(number); bytes <= 10; bytes++) {
            byte[] array = new byte[12];
            Arrays.fill(array, (byte) 0xFF);
            ByteBuf out = Unpooled.wrappedBuffer(array);
            Varint.writePadded(out, 1, bytes, number);
            assertThat(array[0]).isEqualTo((byte) 0xFF);
            assertThat(array[1 + bytes]).isEqualTo((byte) 0xFF);
            out.setIndex(1, 1 + bytes);
            assertThat(Varint.read(out)).isEqualTo(number);
            assertThat(out.isReadable()).isFalse();
            assertThat(CodedInputStream.newInstance(array, 1, bytes).readRawVarint64())
                    .isEqualTo(number);
        }
    }

    @Test
    void aNumberThatIsCutOffOrTooLongIsAFault() {
        assertThatThrownBy(() -> Varint.read(bytes())).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> Varint.read(bytes(0x80))).hasMessageContaining("cut off");
        assertThatThrownBy(() -> Varint.read(bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("more than 10 bytes");
    }

    @Test
    void aLengthIsNeitherNegativeNorBeyondItsLimitNorBeyondWhatIsThere() {
        assertThat(Varint.readLength(bytes(0), 0, "a frame")).isZero();
        assertThat(Varint.readLength(bytes(3, 1, 2, 3), 3, "a frame")).isEqualTo(3);
        assertThatThrownBy(() -> Varint.readLength(bytes(3, 1, 2, 3), 2, "a frame"))
                .hasMessageContaining("at most 2");
        assertThatThrownBy(() -> Varint.readLength(bytes(3, 1, 2), 9, "a frame"))
                .hasMessageContaining("at most 2");
        assertThatThrownBy(() -> Varint.readLength(
                        bytes(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01), 100, "a frame"))
                .isInstanceOf(WireFault.class);
    }

    @Test
    void aLengthThatCannotBeSaysOfWhat() {
        assertThatThrownBy(() -> MetadataFields.read(bytes(0x81, 0x40)))
                .hasMessage("metadata: length 8193 (expected: at most 0)");
        assertThatThrownBy(() -> MetadataFields.read(bytes(3, 0x0A, 0x7F, 0)))
                .hasMessage("metadata entry: length 127 (expected: at most 1)");
        assertThatThrownBy(() ->
                        MethodDictionary.read(bytes(0x0A, 3, 0x12, 0x80, 2), (name, number, shape, schemaHash) -> {}))
                .hasMessage("dictionary, name of a service: length 256 (expected: at most 0)");
    }
}
