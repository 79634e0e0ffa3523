package dev.rpcx.internal.wire;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.schema.MethodSchema;
import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;

/**
 * Encodes and decodes the entries of a DICTIONARY frame, in which a server lists its methods. An entry has the number
 * of a method, the names under which the service and the method are published, the {@code MethodShape}, and a hash of
 * the {@link MethodSchema}. The shape describes how the parameters and the result are encoded.
 */
public final class MethodDictionary {
    private static final int ENTRY = 1 << 3 | 2;
    private static final int NUMBER = 1;
    private static final int SERVICE = 2;
    private static final int METHOD = 3;
    private static final int SHAPE = 5;
    private static final int SCHEMA = 6;

    /** Value that stands for the {@code MethodShape} of a method if the other side has not sent it. */
    public static final int UNKNOWN_SHAPE = 0;

    /** Receives the entries of a dictionary that is being decoded. */
    public interface Reader {
        /**
         * Receives one entry of the dictionary.
         *
         * @param publishedName published names of the service and the method, as joined by {@link MethodDictionary#key}
         * @param shape {@code MethodShape} of the method; {@link #UNKNOWN_SHAPE} if the server has not sent it
         * @param schemaHash {@link MethodSchema#hash} of the method; {@link MethodSchema#NO_HASH} if the server has not
         *     sent it
         */
        void entry(String publishedName, int number, int shape, long schemaHash);
    }

    private MethodDictionary() {}

    /**
     * Returns the text by which a method is found in maps. This is the name of the service, a NUL, and the name of the
     * method. No published name contains a NUL, but names that a peer sends are not checked.
     */
    public static String key(String service, String method) {
        return service + '\0' + method;
    }

    public static void write(
            ByteBuf out, ByteBuf scratch, String service, String method, int number, long schemaHash, int shape) {
        scratch.clear();
        ProtoFields.writeNumber(scratch, NUMBER, number);
        ProtoFields.writeText(scratch, SERVICE, service);
        ProtoFields.writeText(scratch, METHOD, method);
        scratch.writeByte(SHAPE << 3 | 5).writeIntLE(shape);
        if (schemaHash != MethodSchema.NO_HASH) {
            scratch.writeByte(SCHEMA << 3 | 1).writeLongLE(schemaHash);
        }
        out.writeByte(ENTRY);
        Varint.write(out, scratch.readableBytes());
        out.writeBytes(scratch);
    }

    public static void read(ByteBuf in, Reader reader) {
        int end = in.writerIndex();
        while (in.isReadable()) {
            int tag = ProtoFields.tag(in);
            if (tag == ENTRY) {
                int bytes = Varint.readLength(in, end - in.readerIndex(), "dictionary entry");
                readEntry(in, in.readerIndex() + bytes, reader);
            } else {
                ProtoFields.skip(in, tag, end);
            }
        }
    }

    /**
     * Decodes the name of a service or a method. A name of more than 255 bytes ends the connection by a
     * {@code WireFault}, since a client keeps the names of a dictionary in memory.
     */
    private static String name(ByteBuf in, int end, String what) {
        int bytes = Varint.readLength(in, Math.min(Wire.MAX_NAME_BYTES, end - in.readerIndex()), what);
        return in.readCharSequence(bytes, StandardCharsets.UTF_8).toString();
    }

    private static void readEntry(ByteBuf in, int end, Reader reader) {
        long number = 0;
        String service = "";
        String method = "";
        int shape = UNKNOWN_SHAPE;
        long schemaHash = MethodSchema.NO_HASH;
        while (in.readerIndex() < end) {
            int tag = ProtoFields.tag(in);
            switch (tag) {
                case NUMBER << 3 -> number = Varint.read(in);
                case SERVICE << 3 | 2 -> service = name(in, end, "dictionary, name of a service");
                case METHOD << 3 | 2 -> method = name(in, end, "dictionary, name of a method");
                case SHAPE << 3 | 5 -> {
                    expectRest(in, 4, end);
                    shape = in.readIntLE();
                }
                case SCHEMA << 3 | 1 -> {
                    expectRest(in, 8, end);
                    schemaHash = in.readLongLE();
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        ProtoFields.expectEnd(in, end);
        if (number <= 0 || number > Integer.MAX_VALUE) {
            throw new WireFault("method number " + number + " (expected: 1 to " + Integer.MAX_VALUE + ")");
        }
        reader.entry(key(service, method), (int) number, shape, schemaHash);
    }

    private static void expectRest(ByteBuf in, int bytes, int end) {
        if (end - in.readerIndex() < bytes) {
            throw new WireFault("a dictionary entry is cut off");
        }
    }
}
