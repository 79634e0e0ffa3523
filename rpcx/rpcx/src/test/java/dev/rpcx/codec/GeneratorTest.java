package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;

class GeneratorTest {
    private record Hidden(int x, String name, List<Long> numbers, long l, double d) {
        private Hidden {
            name = name.strip();
        }
    }

    static class Wider extends Bean {}

    record OfBeans(List<Bean> beans) {}

    record Tree(Map<String, Tree> under) {
        static Tree of(int depth) {
            return depth == 0 ? new Tree(Map.of()) : new Tree(Map.of("x", of(depth - 1)));
        }
    }

    /** Otherwise the fields that the subclass adds would be lost on the way, and nobody would notice. */
    @Test
    void aSubclassOfWhatIsDeclaredIsRefused() {
        Codec<Object> codec =
                Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(OfBeans.class);
        ByteBuf out = Unpooled.buffer();
        codec.write(new OfBeans(List.of(new Bean())), out);
        int written = out.writerIndex();
        assertThatThrownBy(() -> codec.write(new OfBeans(List.of(new Bean(), new Wider())), out))
                .isInstanceOf(CodecException.class)
                .hasMessageContaining("Bean: an object of a subclass would arrive as its superclass")
                .cause()
                .hasMessageContaining("GeneratorTest$Wider");
        assertThat(out.writerIndex()).isEqualTo(written);
    }

    /** An entry of a map counts as a message inside another one, for both sides, as in protobuf-java. */
    @Test
    void whatCanBeWrittenCanBeRead() {
        Codec<Object> codec =
                Codecs.of(new Schema(LockFile.none()), Limits.STANDARD).value(Tree.class);
        Codec<Object> deeper = Codecs.of(new Schema(LockFile.none()), new Limits(1 << 20, 1000, 1000, 100, 100, 16))
                .value(Tree.class);
        for (int depth = 0; depth < 120; depth++) {
            ByteBuf bytes = Unpooled.buffer();
            deeper.write(Tree.of(depth), bytes);
            boolean isRead = succeeds(() -> codec.read(bytes));
            Tree tree = Tree.of(depth);
            assertThat(succeeds(() -> codec.write(tree, Unpooled.buffer())))
                    .as("%d", depth)
                    .isEqualTo(isRead);
            assertThat(isRead).as("%d", depth).isEqualTo(1 + 2 * depth <= 100);
        }
    }

    private static boolean succeeds(Runnable work) {
        try {
            work.run();
            return true;
        } catch (CodecException e) {
            assertThat(e.code()).isEqualTo(CodecException.Code.TOO_DEEP);
            return false;
        }
    }

    static class Bean {
        private int age;
        private String name = "";
        private List<String> tags = List.of();
        private boolean adult;

        public int getAge() {
            return age;
        }

        public void setAge(int age) {
            this.age = age;
        }

        public String name() {
            return name;
        }

        public Bean name(String name) {
            this.name = name;
            return this;
        }

        public List<String> getTags() {
            return tags;
        }

        public void setTags(List<String> tags) {
            this.tags = tags;
        }

        public boolean isAdult() {
            return adult;
        }

        public void setAdult(boolean adult) {
            this.adult = adult;
        }
    }

    @Test
    void privateRecordsAndClassesGetGeneratedCodecs() {
        Codecs codecs = Codecs.standard(GeneratorTest.class);
        assertThat(codecs.isGenerated(Hidden.class)).isTrue();
        assertThat(codecs.isGenerated(Bean.class)).isTrue();
    }

    /** A generated class beside a type of another loader exists for as long as that loader. */
    @Test
    void codecsThatAreMadeAgainGetTheClassThatIsThere() throws Exception {
        Class<?> elsewhere = CompiledSources.loader(
                        Map.of("made.again.Place", "package made.again; public record Place(int x, String name) {}"))
                .loadClass("made.again.Place");
        MessageCodec first = generated(new Schema(LockFile.none()).value(elsewhere));
        MessageCodec again = generated(new Schema(LockFile.none()).value(elsewhere));
        assertThat(first.getClass().isHidden()).isFalse();
        assertThat(again).isNotSameAs(first).hasSameClassAs(first);
        LockFile lock = LockFile.parse("message made.again.Place\n  3 x int\n  4 name string\n", "other numbers");
        assertThat(generated(new Schema(lock).value(elsewhere))).doesNotHaveSameClassAs(first);
    }

    private static MessageCodec generated(MessageType type) {
        FieldCodec[] fields = type.fields().stream()
                .map(field ->
                        FieldCodec.of(field, ElementCodec.of(field.shape(), new ElementCodec.MessageLink()), null))
                .toArray(FieldCodec[]::new);
        return Objects.requireNonNull(Generator.generate(type, fields));
    }

    @Test
    void generatedAndReflectiveWriteTheSameBytes() {
        Bean bean = new Bean().name("Ada");
        bean.setAge(36);
        bean.setTags(List.of("a", "b"));
        bean.setAdult(true);
        for (Object value : List.of(new Hidden(-7, "Zoë", List.of(1L, -1L), 1L << 40, 0.5), bean)) {
            Codec<Object> generated = Codecs.standard(GeneratorTest.class).value(value.getClass());
            Codec<Object> reflective = Codecs.reflective(new Schema(LockFile.none()), Limits.STANDARD)
                    .value(value.getClass());
            ByteBuf one = Unpooled.buffer();
            ByteBuf other = Unpooled.buffer();
            generated.write(value, one);
            reflective.write(value, other);
            assertThat(ByteBufUtil.hexDump(one)).isEqualTo(ByteBufUtil.hexDump(other));
            assertThat(generated.read(other)).usingRecursiveComparison().isEqualTo(value);
            assertThat(reflective.read(one)).usingRecursiveComparison().isEqualTo(value);
        }
    }

    record Wide(
            @Field(1) int first,
            @Field(3) List<String> words,
            @Field(7) String text,
            @Field(20) String far,
            @Field(21) List<Integer> packed,
            @Field(2_000) Map<String, Long> counts) {}

    private static ByteBuf bytes(Codec<Object> codec, Object value) {
        ByteBuf bytes = Unpooled.buffer();
        codec.write(value, bytes);
        return bytes;
    }

    @Test
    void fieldsAreReadInAnyOrderTheLastOfOneThatIsThereTwice() {
        Codec<Object> generated = Codecs.standard(GeneratorTest.class).value(Wide.class);
        Codec<Object> reflective =
                Codecs.reflective(new Schema(LockFile.none()), Limits.STANDARD).value(Wide.class);
        List<ByteBuf> fields = new ArrayList<>();
        for (Wide one : List.of(
                new Wide(300, List.of(), "", "", List.of(), Map.of()),
                new Wide(0, List.of("a", "b"), "", "", List.of(), Map.of()),
                new Wide(0, List.of("c"), "", "", List.of(), Map.of()),
                new Wide(0, List.of(), "t", "", List.of(), Map.of()),
                new Wide(0, List.of(), "", "far", List.of(), Map.of()),
                new Wide(0, List.of(), "", "farther", List.of(), Map.of()),
                new Wide(0, List.of(), "", "", List.of(1, 2, 1000), Map.of()),
                new Wide(0, List.of(), "", "", List.of(-4), Map.of()),
                new Wide(0, List.of(), "", "", List.of(), Map.of("k", 1L)),
                new Wide(0, List.of(), "", "", List.of(), Map.of("k", 2L, "l", 3L)))) {
            fields.add(bytes(generated, one));
        }
        // this tag has more bytes than it needs: no writer writes it, and every reader accepts it
        fields.add(Unpooled.wrappedBuffer(new byte[] {(byte) 0x88, 0, 5}));
        // these numbers are not packed
        fields.add(Unpooled.wrappedBuffer(new byte[] {(byte) 0xA8, 1, 6, (byte) 0xA8, 1, 7}));
        Random random = new Random(1);
        for (int i = 0; i < 500; i++) {
            Collections.shuffle(fields, random);
            ByteBuf all = Unpooled.buffer();
            fields.forEach(field -> all.writeBytes(field.duplicate()));
            assertThat(generated.read(all.duplicate())).isEqualTo(reflective.read(all.duplicate()));
        }
        ByteBuf inOrder = Unpooled.buffer();
        fields.sort(Comparator.comparing(ByteBufUtil::hexDump));
        fields.forEach(field -> inOrder.writeBytes(field.duplicate()));
        Wide read = (Wide) generated.read(inOrder);
        assertThat(read.words()).containsExactlyInAnyOrder("a", "b", "c");
        assertThat(read.packed()).containsExactlyInAnyOrder(1, 2, 1000, -4, 6, 7);
        assertThat(read.counts()).containsOnlyKeys("k", "l");
    }

    @Test
    void numbersOfEveryWidthHaveTheBytesOfProtobufAndComeBack() throws IOException {
        Codec<Object> generated = Codecs.standard(GeneratorTest.class).value(Hidden.class);
        for (int bits = 0; bits < 64; bits++) {
            for (long l : new long[] {1L << bits, (1L << bits) - 1, -(1L << bits)}) {
                Hidden value = new Hidden((int) l, "", List.of(l, -1L), l, 0);
                byte[] expected = protobuf(value);
                ByteBuf written = bytes(generated, value);
                assertThat(ByteBufUtil.hexDump(written)).isEqualTo(ByteBufUtil.hexDump(expected));
                // first the array ends with the message, and then other bytes follow the message
                assertThat(generated.read(Unpooled.wrappedBuffer(expected))).isEqualTo(value);
                byte[] longer = Arrays.copyOf(expected, expected.length + 20);
                Arrays.fill(longer, expected.length, longer.length, (byte) 0xFF);
                assertThat(generated.read(Unpooled.wrappedBuffer(longer, 0, expected.length)))
                        .isEqualTo(value);
            }
        }
    }

    private static byte[] protobuf(Hidden value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        if (value.x != 0) {
            out.writeInt32(1, value.x);
        }
        int length = 0;
        for (long number : value.numbers) {
            length += CodedOutputStream.computeInt64SizeNoTag(number);
        }
        out.writeTag(3, 2);
        out.writeUInt32NoTag(length);
        for (long number : value.numbers) {
            out.writeInt64NoTag(number);
        }
        if (value.l != 0) {
            out.writeInt64(4, value.l);
        }
        out.flush();
        return bytes.toByteArray();
    }

    @Test
    void aListIsReadWhateverTheLastOneWas() {
        Codec<Object> generated = Codecs.standard(GeneratorTest.class).value(Bean.class);
        for (int size : new int[] {0, 3, 20_000, 1, 9, 10, 11, 19_999, 500, 500, 0, 2}) {
            Bean bean = new Bean();
            bean.setTags(Collections.nCopies(size, "tag"));
            Bean read = (Bean) generated.read(bytes(generated, bean));
            assertThat(read.getTags()).hasSize(size).allMatch("tag"::equals);
        }
    }
}
