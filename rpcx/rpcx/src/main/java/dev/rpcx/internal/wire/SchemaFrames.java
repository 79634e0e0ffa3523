package dev.rpcx.internal.wire;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.MethodSchema.Kind;
import dev.rpcx.internal.schema.MethodSchema.Member;
import dev.rpcx.internal.schema.MethodSchema.Type;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes the payloads of SCHEMA frames. In such a frame, a client asks for the members of methods whose
 * hash in the server's dictionary differs from its own, and a server answers with the types of these methods.
 */
public final class SchemaFrames {
    private static final int ASKED = 1;

    private static final int TYPE = 1;
    private static final int TYPE_METHOD = 1;
    private static final int TYPE_KIND = 2;
    private static final int TYPE_NAME = 3;
    private static final int TYPE_MEMBER = 4;

    private static final int MEMBER_NUMBER = 1;
    private static final int MEMBER_NAME = 2;
    private static final int MEMBER_TYPE = 3;
    private static final int MEMBER_FORMER_NAME = 4;

    /** Maximum number of bytes of a type in a frame: the frame's payload, without the tag and the length before it. */
    private static final int MAX_TYPE_BYTES = Wire.MAX_PAYLOAD_BYTES - 4;

    /**
     * Some or all members of a type, as a frame has them.
     *
     * @param method number of the method, as in the dictionary
     * @param kind word of the type's {@link Kind}; empty if these are further members of the type that came before
     * @param name name of the type; empty if {@code kind} is
     */
    public record Part(long method, String kind, String name, List<Member> members) {}

    private SchemaFrames() {}

    // ---- the question

    /**
     * Writes the payload in which a client asks for the members of methods. Numbers that do not fit into one frame are
     * left out.
     *
     * @param numbers numbers of the methods, in ascending order
     */
    public static ByteBuf question(Iterable<Integer> numbers) {
        ByteBuf packed = Unpooled.buffer();
        for (int number : numbers) {
            if (packed.readableBytes() + Varint.size(number) > MAX_TYPE_BYTES) {
                break;
            }
            Varint.write(packed, number);
        }
        ByteBuf out = Unpooled.buffer();
        out.writeByte(ASKED << 3 | 2);
        Varint.write(out, packed.readableBytes());
        return out.writeBytes(packed);
    }

    /**
     * Reads a question. Only numbers that are above all numbers before them are passed on, so that no question asks for
     * a method twice.
     */
    public static void readQuestion(ByteBuf in, IntConsumer asked) {
        int end = in.writerIndex();
        long last = 0;
        while (in.isReadable()) {
            int tag = ProtoFields.tag(in);
            if (tag == ASKED << 3) {
                last = ask(Varint.read(in), last, asked);
            } else if (tag == (ASKED << 3 | 2)) {
                int endOfNumbers = endOfField(in, end);
                while (in.readerIndex() < endOfNumbers) {
                    last = ask(Varint.read(in), last, asked);
                }
                ProtoFields.expectEnd(in, endOfNumbers);
            } else {
                ProtoFields.skip(in, tag, end);
            }
        }
    }

    /** Passes a number on if it is above the last one. Returns the number that is the last one now. */
    private static long ask(long number, long last, IntConsumer asked) {
        if (number <= last || number > Integer.MAX_VALUE) {
            return last;
        }
        asked.accept((int) number);
        return number;
    }

    // ---- the answer

    /**
     * Returns the payloads of the frames that have the types of one method. A type that does not fit into one frame
     * goes on in the next one.
     *
     * @param method number of the method, as in the dictionary
     */
    public static List<ByteBuf> answer(int method, List<Type> types) {
        Frames frames = new Frames();
        for (Type type : types) {
            ByteBuf part = Unpooled.buffer();
            ProtoFields.writeNumber(part, TYPE_METHOD, method);
            ProtoFields.writeText(part, TYPE_KIND, type.kind().word);
            ProtoFields.writeText(part, TYPE_NAME, type.name());
            for (Member member : type.members()) {
                ByteBuf written = written(member);
                int bytes = 1 + Varint.size(written.readableBytes()) + written.readableBytes();
                if (part.readableBytes() + bytes > MAX_TYPE_BYTES) {
                    frames.add(part);
                    part = Unpooled.buffer();
                    ProtoFields.writeNumber(part, TYPE_METHOD, method);
                }
                writeMessage(part, TYPE_MEMBER, written);
            }
            frames.add(part);
        }
        return frames.all();
    }

    private static ByteBuf written(Member member) {
        ByteBuf out = Unpooled.buffer();
        ProtoFields.writeNumber(out, MEMBER_NUMBER, member.number());
        ProtoFields.writeText(out, MEMBER_NAME, member.name());
        ProtoFields.writeText(out, MEMBER_TYPE, member.type());
        for (String name : member.formerNames()) {
            ProtoFields.writeText(out, MEMBER_FORMER_NAME, name);
        }
        return out;
    }

    private static void writeMessage(ByteBuf out, int field, ByteBuf message) {
        out.writeByte(field << 3 | 2);
        Varint.write(out, message.readableBytes());
        out.writeBytes(message);
    }

    /** Collects the payloads of frames. */
    private static final class Frames {
        private final List<ByteBuf> full = new ArrayList<>();
        private ByteBuf last = Unpooled.buffer();

        void add(ByteBuf part) {
            int bytes = 1 + Varint.size(part.readableBytes()) + part.readableBytes();
            if (last.readableBytes() + bytes > Wire.MAX_PAYLOAD_BYTES) {
                full.add(last);
                last = Unpooled.buffer();
            }
            writeMessage(last, TYPE, part);
        }

        List<ByteBuf> all() {
            full.add(last);
            return List.copyOf(full);
        }
    }

    /** Reads the payload of one frame of an answer. */
    public static void readAnswer(ByteBuf in, Consumer<Part> reader) {
        int end = in.writerIndex();
        while (in.isReadable()) {
            int tag = ProtoFields.tag(in);
            if (tag == (TYPE << 3 | 2)) {
                reader.accept(part(in, endOfField(in, end)));
            } else {
                ProtoFields.skip(in, tag, end);
            }
        }
    }

    private static int endOfField(ByteBuf in, int end) {
        int bytes = Varint.readLength(in, end - in.readerIndex(), "a field of a schema");
        return in.readerIndex() + bytes;
    }

    private static String text(ByteBuf in, int end) {
        int max = Math.min(MethodSchema.MAX_NAME_BYTES, end - in.readerIndex());
        int bytes = Varint.readLength(in, max, "a text of a schema");
        return in.readCharSequence(bytes, StandardCharsets.UTF_8).toString();
    }

    private static Part part(ByteBuf in, int end) {
        long method = 0;
        String kind = "";
        String name = "";
        List<Member> members = new ArrayList<>();
        while (in.readerIndex() < end) {
            int tag = ProtoFields.tag(in);
            switch (tag) {
                case TYPE_METHOD << 3 -> method = Varint.read(in);
                case TYPE_KIND << 3 | 2 -> kind = text(in, end);
                case TYPE_NAME << 3 | 2 -> name = text(in, end);
                case TYPE_MEMBER << 3 | 2 -> {
                    Member member = member(in, endOfField(in, end));
                    if (member != null) {
                        members.add(member);
                    }
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        ProtoFields.expectEnd(in, end);
        return new Part(method, kind, name, members);
    }

    /** Reads a member. Returns null if its number is not one that a member can have. */
    private static @Nullable Member member(ByteBuf in, int end) {
        long number = 0;
        String name = "";
        String type = "";
        List<String> formerNames = new ArrayList<>();
        while (in.readerIndex() < end) {
            int tag = ProtoFields.tag(in);
            switch (tag) {
                case MEMBER_NUMBER << 3 -> number = Varint.read(in);
                case MEMBER_NAME << 3 | 2 -> name = text(in, end);
                case MEMBER_TYPE << 3 | 2 -> type = text(in, end);
                case MEMBER_FORMER_NAME << 3 | 2 -> {
                    String formerName = text(in, end);
                    if (formerNames.size() < MethodSchema.MAX_FORMER_NAMES) {
                        formerNames.add(formerName);
                    }
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        ProtoFields.expectEnd(in, end);
        return number < 0 || number > Integer.MAX_VALUE ? null : new Member((int) number, name, type, formerNames);
    }
}
