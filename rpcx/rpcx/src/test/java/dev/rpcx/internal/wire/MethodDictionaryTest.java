package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.schema.MethodSchema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class MethodDictionaryTest {
    private static List<String> read(String service, String method) {
        ByteBuf entry = Unpooled.buffer();
        ProtoFields.writeNumber(entry, 1, 7);
        ProtoFields.writeText(entry, 2, service);
        ProtoFields.writeText(entry, 3, method);
        ByteBuf dictionary = Unpooled.buffer().writeByte(1 << 3 | 2);
        Varint.write(dictionary, entry.readableBytes());
        dictionary.writeBytes(entry);
        List<String> read = new ArrayList<>();
        MethodDictionary.read(dictionary, (name, number, shape, schemaHash) -> read.add(name));
        return read;
    }

    @Test
    void aNameThatNoRequestCouldCarryIsRefused() {
        String longest = "x".repeat(Wire.MAX_NAME_BYTES);
        assertThat(read("greeter", longest)).containsExactly(MethodDictionary.key("greeter", longest));
        assertThatThrownBy(() -> read("greeter", longest + "x")).isInstanceOf(WireFault.class);
        assertThatThrownBy(() -> read(longest + "x", "hello")).isInstanceOf(WireFault.class);
    }

    /** Writes the fields of a message. */
    private interface Fields {
        void write(CodedOutputStream out) throws IOException;
    }

    private static byte[] message(Fields fields) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        fields.write(out);
        out.flush();
        return bytes.toByteArray();
    }

    private static List<String> readAll(Fields fields) throws IOException {
        List<String> read = new ArrayList<>();
        MethodDictionary.read(
                Unpooled.wrappedBuffer(message(fields)),
                (name, number, shape, schemaHash) ->
                        read.add(name.replace('\0', '/') + " " + number + " " + shape + " " + schemaHash));
        return read;
    }

    private static List<String> readEntry(Fields fields) throws IOException {
        byte[] entry = message(fields);
        return readAll(out -> out.writeByteArray(1, entry));
    }

    @Test
    void entriesHaveTheBytesThatProtobufGivesThem() throws IOException {
        ByteBuf out = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        MethodDictionary.write(out, scratch, "greeter", "hello", 300, -2, 0x84000004);
        MethodDictionary.write(out, scratch, "s", "x".repeat(200), Integer.MAX_VALUE, MethodSchema.NO_HASH, 7);
        byte[] first = message(one -> {
            one.writeInt32(1, 300);
            one.writeString(2, "greeter");
            one.writeString(3, "hello");
            one.writeFixed32(5, 0x84000004);
            one.writeFixed64(6, -2);
        });
        byte[] second = message(one -> {
            one.writeInt32(1, Integer.MAX_VALUE);
            one.writeString(2, "s");
            one.writeString(3, "x".repeat(200));
            one.writeFixed32(5, 7);
        });
        byte[] both = message(all -> {
            all.writeByteArray(1, first);
            all.writeByteArray(1, second);
        });
        assertThat(ByteBufUtil.getBytes(out)).isEqualTo(both);
        assertThat(readAll(all -> all.writeRawBytes(both)))
                .containsExactly(
                        "greeter/hello 300 " + 0x84000004 + " -2",
                        "s/" + "x".repeat(200) + " " + Integer.MAX_VALUE + " 7 " + MethodSchema.NO_HASH);
    }

    @Test
    void whatIsUnknownIsPassedOver() throws IOException {
        byte[] entry = message(one -> {
            one.writeFixed64(4, -1);
            one.writeString(6, "no hash");
            one.writeString(9, "other");
            one.writeInt64(10, Long.MAX_VALUE);
            one.writeString(3, "m");
            one.writeString(1, "a number that is none");
            one.writeInt32(1, 1);
            one.writeString(2, "s");
        });
        byte[] within = message(all -> all.writeByteArray(1, message(one -> one.writeInt32(1, 9))));
        assertThat(readAll(all -> {
                    all.writeInt32(1, 5);
                    all.writeByteArray(2, within);
                    all.writeByteArray(1, entry);
                    all.writeFixed64(3, 4);
                }))
                .containsExactly("s/m 1 " + MethodDictionary.UNKNOWN_SHAPE + " " + MethodSchema.NO_HASH);
    }

    @Test
    void aMethodsNumberIsPositiveAndHas31Bits() throws IOException {
        for (long number : new long[] {0, -1, Integer.MAX_VALUE + 1L, 1L << 32 | 1, Long.MIN_VALUE}) {
            assertThatThrownBy(() -> readEntry(one -> one.writeInt64(1, number)))
                    .isInstanceOf(WireFault.class)
                    .hasMessage("method number " + number + " (expected: 1 to 2147483647)");
        }
        assertThat(readEntry(one -> one.writeInt32(1, 1))).containsExactly("/ 1 0 0");
        assertThat(readEntry(one -> one.writeInt32(1, Integer.MAX_VALUE))).containsExactly("/ 2147483647 0 0");
    }

    /** The bytes after each entry would be valid if they were part of it. */
    @Test
    void noFieldOfAnEntryGoesOnBehindIt() {
        assertCut("a dictionary entry is cut off", 6, 0x08, 1, 0x2D, 1, 2, 3);
        assertCut("a dictionary entry is cut off", 10, 0x08, 1, 0x31, 1, 2, 3, 4, 5, 6, 7);
        assertCut("dictionary, name of a service: length 4 (expected: at most 2)", 5, 0x08, 1, 0x12, 4, 'a');
        assertCut("dictionary, name of a method: length 4 (expected: at most 2)", 5, 0x08, 1, 0x1A, 4, 'a');
        assertCut("a message runs past its end", 4, 0x08, 1, 0x38, 0x80);
        assertCut("a field is cut off", 4, 0x08, 1, 0x3D, 1);
    }

    private static void assertCut(String fault, int... entry) {
        ByteBuf in = Unpooled.buffer().writeByte(0x0A);
        for (int each : entry) {
            in.writeByte(each);
        }
        in.writeBytes(new byte[] {1, 1, 1, 1, 1, 1, 1, 1});
        assertThatThrownBy(() -> MethodDictionary.read(in, (name, number, shape, schemaHash) -> {}))
                .isInstanceOf(WireFault.class)
                .hasMessage(fault);
    }
}
