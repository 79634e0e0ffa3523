package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.MethodSchema.Kind;
import dev.rpcx.internal.schema.MethodSchema.Member;
import dev.rpcx.internal.schema.MethodSchema.Type;
import dev.rpcx.internal.wire.SchemaFrames.Part;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests the payloads of SCHEMA frames, in both directions. */
class SchemaFramesTest {
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

    private static List<Integer> asked(ByteBuf question) {
        List<Integer> asked = new ArrayList<>();
        SchemaFrames.readQuestion(question, asked::add);
        return asked;
    }

    private static List<Part> parts(ByteBuf answer) {
        List<Part> parts = new ArrayList<>();
        SchemaFrames.readAnswer(answer, parts::add);
        return parts;
    }

    @Test
    void aQuestionHasTheBytesThatProtobufGivesIt() throws IOException {
        byte[] numbers = {1, 3, (byte) 0xAC, 2};
        byte[] question = message(out -> out.writeByteArray(1, numbers));
        assertThat(ByteBufUtil.getBytes(SchemaFrames.question(List.of(1, 3, 300))))
                .isEqualTo(question);
        assertThat(asked(Unpooled.wrappedBuffer(question))).containsExactly(1, 3, 300);
    }

    @Test
    void aQuestionFitsIntoAFrame() {
        List<Integer> all = IntStream.range(0, 10_000)
                .mapToObj(i -> Integer.MAX_VALUE - 10_000 + i)
                .toList();
        ByteBuf question = SchemaFrames.question(all);
        assertThat(question.readableBytes()).isLessThanOrEqualTo(Wire.MAX_PAYLOAD_BYTES);
        assertThat(asked(question)).hasSizeGreaterThan(3_000).isEqualTo(all.subList(0, 3_275));
    }

    @Test
    void onlyNumbersThatAscendAreAskedFor() throws IOException {
        byte[] question = message(out -> {
            out.writeInt32(1, 5);
            out.writeInt32(1, 5);
            out.writeByteArray(1, new byte[] {4, 0, 7, 6, 7});
            out.writeString(2, "unknown");
            out.writeInt64(1, 1L << 40);
            out.writeInt64(1, -1);
            out.writeInt32(1, 9);
        });
        assertThat(asked(Unpooled.wrappedBuffer(question))).containsExactly(5, 7, 9);
        assertThat(asked(Unpooled.EMPTY_BUFFER)).isEmpty();
    }

    @Test
    void aQuestionThatCannotBeReadIsAFault() {
        for (byte[] question : new byte[][] {{10, 2, 1}, {10, 1, (byte) 0x80, 1}, {8}, {11}, {0, 0}, {18, 5, 1}}) {
            assertThatThrownBy(() -> asked(Unpooled.wrappedBuffer(question))).isInstanceOf(WireFault.class);
        }
    }

    @Test
    void anAnswerHasTheBytesThatProtobufGivesIt() throws IOException {
        List<Type> types = List.of(
                new Type(Kind.CALL, "FindRequest", List.of(new Member(1, "id", "string", List.of()))),
                new Type(Kind.ENUM, "Colour", List.of(new Member(0, "", "unknown", List.of("RED", "ROT")))));
        byte[] id = message(member -> {
            member.writeInt32(1, 1);
            member.writeString(2, "id");
            member.writeString(3, "string");
        });
        byte[] unknown = message(member -> {
            member.writeString(3, "unknown");
            member.writeString(4, "RED");
            member.writeString(4, "ROT");
        });
        byte[] request = message(type -> {
            type.writeInt32(1, 300);
            type.writeString(2, "call");
            type.writeString(3, "FindRequest");
            type.writeByteArray(4, id);
        });
        byte[] colour = message(type -> {
            type.writeInt32(1, 300);
            type.writeString(2, "enum");
            type.writeString(3, "Colour");
            type.writeByteArray(4, unknown);
        });
        byte[] both = message(all -> {
            all.writeByteArray(1, request);
            all.writeByteArray(1, colour);
        });
        List<ByteBuf> frames = SchemaFrames.answer(300, types);
        assertThat(frames).hasSize(1);
        assertThat(ByteBufUtil.getBytes(frames.get(0))).isEqualTo(both);
        assertThat(parts(frames.get(0).duplicate()))
                .containsExactly(
                        new Part(300, "call", "FindRequest", types.get(0).members()),
                        new Part(300, "enum", "Colour", types.get(1).members()));
    }

    /** The members of one type go on in the next frame where they do not fit, and each frame is read by itself. */
    @Test
    void aTypeThatDoesNotFitIntoAFrameGoesOnInTheNext() {
        List<Member> members = new ArrayList<>();
        for (int number = 1; number <= MethodSchema.MAX_MEMBERS; number++) {
            members.add(new Member(number, "member" + "x".repeat(number % 200) + number, "repeated #1", List.of()));
        }
        members.set(7, new Member(8, "y".repeat(255), "string", Collections.nCopies(16, "z".repeat(255))));
        List<ByteBuf> frames = SchemaFrames.answer(
                7, List.of(new Type(Kind.MESSAGE, "Large", members), new Type(Kind.CALL, "Reply", List.of())));
        assertThat(frames).hasSizeGreaterThan(100).allMatch(frame -> frame.readableBytes() <= Wire.MAX_PAYLOAD_BYTES);
        List<Part> parts = new ArrayList<>();
        frames.forEach(frame -> parts.addAll(parts(frame)));
        Part last = parts.remove(parts.size() - 1);
        assertThat(last).isEqualTo(new Part(7, "call", "Reply", List.of()));
        assertThat(parts).allMatch(part -> part.method() == 7);
        assertThat(parts.get(0).kind() + " " + parts.get(0).name()).isEqualTo("message Large");
        assertThat(parts.subList(1, parts.size()))
                .allMatch(part -> part.kind().isEmpty() && part.name().isEmpty());
        assertThat(parts.stream().flatMap(part -> part.members().stream())).containsExactlyElementsOf(members);
    }

    @Test
    void whatIsUnknownOrTooMuchOfAnAnswerIsPassedOver() throws IOException {
        byte[] member = message(one -> {
            one.writeInt32(1, 1);
            one.writeString(2, "id");
            one.writeString(9, "later");
            for (int i = 0; i < 20; i++) {
                one.writeString(4, "was" + i);
            }
        });
        byte[] large = message(one -> one.writeInt64(1, 1L << 31));
        byte[] negative = message(one -> one.writeInt64(1, -1));
        byte[] type = message(one -> {
            one.writeInt64(1, 1L << 40);
            one.writeString(2, "later kind");
            one.writeFixed64(11, 5);
            one.writeByteArray(4, member);
            one.writeByteArray(4, large);
            one.writeByteArray(4, negative);
        });
        byte[] answer = message(all -> {
            all.writeInt32(1, 5);
            all.writeByteArray(2, type);
            all.writeByteArray(1, type);
        });
        List<Part> parts = parts(Unpooled.wrappedBuffer(answer));
        assertThat(parts).hasSize(1);
        assertThat(parts.get(0).method()).isEqualTo(1L << 40);
        assertThat(parts.get(0).kind()).isEqualTo("later kind");
        assertThat(parts.get(0).members()).hasSize(1);
        assertThat(parts.get(0).members().get(0).formerNames()).hasSize(16).endsWith("was15");
    }

    @Test
    void anAnswerThatCannotBeReadIsAFault() throws IOException {
        List<byte[]> types = new ArrayList<>();
        for (int field : new int[] {2, 3}) {
            types.add(message(type -> type.writeString(field, "x".repeat(256))));
        }
        for (int field : new int[] {2, 3, 4}) {
            byte[] member = message(one -> one.writeString(field, "x".repeat(256)));
            types.add(message(type -> type.writeByteArray(4, member)));
        }
        types.add(new byte[] {8});
        types.add(new byte[] {34, 3, 8, 1});
        types.add(new byte[] {34, 1, 8, 1});
        for (byte[] type : types) {
            byte[] answer = message(all -> all.writeByteArray(1, type));
            assertThatThrownBy(() -> parts(Unpooled.wrappedBuffer(answer)))
                    .as(ByteBufUtil.hexDump(type, 0, Math.min(type.length, 20)))
                    .isInstanceOf(WireFault.class);
        }
        ByteBuf beyond = Unpooled.buffer();
        ProtoFields.writeText(beyond, 1, "a type");
        beyond.writerIndex(beyond.writerIndex() - 1);
        assertThatThrownBy(() -> parts(beyond)).isInstanceOf(WireFault.class);
    }
}
