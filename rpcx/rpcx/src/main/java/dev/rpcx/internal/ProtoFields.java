package dev.rpcx.internal;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;

/**
 * Reads and writes the Protobuf fields of RPCX's own messages on the wire. The length of a field is checked before
 * memory is allocated for the field.
 */
public final class ProtoFields {
    private ProtoFields() {}

    /**
     * Reads a length in bytes, and a UTF-8 text of that length.
     *
     * @param end index in {@code in} at which the message with the text ends
     * @param what name of the text, for the message of a {@link WireFault}
     */
    public static String text(ByteBuf in, int end, String what) {
        int length = Varint.readLength(in, end - in.readerIndex(), what);
        return in.readCharSequence(length, StandardCharsets.UTF_8).toString();
    }

    public static void writeText(ByteBuf out, int field, String text) {
        if (!text.isEmpty()) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            out.writeByte(field << 3 | 2);
            Varint.write(out, bytes.length);
            out.writeBytes(bytes);
        }
    }

    public static void writeNumber(ByteBuf out, int field, long value) {
        if (value != 0) {
            out.writeByte(field << 3);
            Varint.write(out, value);
        }
    }

    /**
     * Reads the tag of a field, that is, its number and wire type. Throws a {@link WireFault} for a tag of more than 32
     * bits, since the low 32 bits alone would look like another tag.
     */
    public static int tag(ByteBuf in) {
        long tag = Varint.read(in);
        if (tag >>> 32 != 0) {
            throw new WireFault("tag " + Long.toUnsignedString(tag) + " (expected: a number of 32 bits)");
        }
        return (int) tag;
    }

    /** Reads the tags of a message and of its nested messages, and limits how many tags they have in total. */
    public static final class Counted {
        private final int max;
        private int read;

        public Counted(int max) {
            this.max = max;
        }

        /**
         * Reads a tag as {@link ProtoFields#tag} does, and counts it.
         *
         * @throws WireFault if the tag is longer than 32 bits, or if the limit on the number of tags has been reached
         */
        public int tag(ByteBuf in) {
            if (read == max) {
                throw new WireFault("more than " + max + " fields");
            }
            read++;
            return ProtoFields.tag(in);
        }
    }

    /** Skips the value of an unknown field, whose tag has already been read. The message ends at index {@code end}. */
    public static void skip(ByteBuf in, int tag, int end) {
        switch (tag & 7) {
            case 0 -> Varint.read(in);
            case 1 -> step(in, 8, end);
            case 2 -> step(in, Varint.readLength(in, end - in.readerIndex(), "an unknown field"), end);
            case 5 -> step(in, 4, end);
            default -> throw new WireFault("field of wire type " + (tag & 7) + " (expected: 0, 1, 2 or 5)");
        }
        if (tag >>> 3 == 0) {
            throw new WireFault("field number 0");
        }
    }

    private static void step(ByteBuf in, int bytes, int end) {
        if (bytes > end - in.readerIndex()) {
            throw new WireFault("a field is cut off");
        }
        in.skipBytes(bytes);
    }

    public static void expect(long tag, int expected, String where) {
        if (tag != expected) {
            throw new WireFault(where + ": tag " + tag + " (expected: " + expected + ")");
        }
    }

    public static void expectEnd(ByteBuf in, int end) {
        if (in.readerIndex() != end) {
            throw new WireFault("a message runs past its end");
        }
    }
}
