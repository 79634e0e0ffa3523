package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The paper's messages, each behind its length in four bytes, high byte first. Source: zhang, figure 5; numbers of fields are ours.
 *
 * <pre>{@code
 * message RPCXRequest { int64 id = 1; string service = 2; string method = 3; repeated Parameter parameters = 4; }
 * message Parameter   { string type = 1; bytes value = 2; }
 * message RPCXReply   { int64 id = 1; bytes result = 2; RPCXError error = 3; }
 * }</pre>
 */
final class ClassicWire {
    /** The type of a parameter is text for people: no class is ever named or loaded from it. */
    record Request(long id, String service, String method, List<byte[]> values) {}

    /** A reply, with the bytes of the result or with an error. */
    record Reply(long id, byte[] result, @Nullable RPCXException error) {}

    private static final int LENGTH_BYTES = 4;
    private static final int MAX_PARAMETERS = 255;
    private static final int ID = 1 << 3;
    private static final int SERVICE = 2 << 3 | 2;
    private static final int METHOD = 3 << 3 | 2;
    private static final int PARAMETER = 4 << 3 | 2;
    private static final int VALUE = 2 << 3 | 2;
    private static final int RESULT = 2 << 3 | 2;
    private static final int ERROR = 3 << 3 | 2;
    private static final byte[] NOTHING = {};

    private ClassicWire() {}

    /** Hands over each whole frame; the begin of one that is cut stays in {@code cut}, which grows with what arrives only. */
    static void cut(ByteBuf cut, ByteBuf in, int maxBytes, Consumer<ByteBuf> reader) {
        while (in.isReadable()) {
            int have = cut.readableBytes();
            int wanted = LENGTH_BYTES;
            if (have >= LENGTH_BYTES) {
                wanted += checked(cut.getInt(cut.readerIndex()), maxBytes);
            }
            cut.writeBytes(in, Math.min(wanted - have, in.readableBytes()));
            if (cut.readableBytes() >= LENGTH_BYTES
                    && cut.readableBytes() == LENGTH_BYTES + checked(cut.getInt(cut.readerIndex()), maxBytes)) {
                cut.skipBytes(LENGTH_BYTES);
                reader.accept(cut);
                cut.clear();
            }
        }
    }

    private static int checked(int length, int maxBytes) {
        if (length < 0 || length > maxBytes) {
            throw new WireFault("classic frame of " + length + " bytes (expected: 0 to " + maxBytes + ")");
        }
        return length;
    }

    static Request readRequest(ByteBuf in) {
        int end = in.writerIndex();
        long id = 0;
        String service = "";
        String method = "";
        List<byte[]> values = new ArrayList<>();
        while (in.isReadable()) {
            int tag = (int) Varint.read(in);
            switch (tag) {
                case ID -> id = Varint.read(in);
                case SERVICE -> service = ProtoFields.text(in, end);
                case METHOD -> method = ProtoFields.text(in, end);
                case PARAMETER -> {
                    if (values.size() == MAX_PARAMETERS) {
                        throw new WireFault("more than " + MAX_PARAMETERS + " parameters");
                    }
                    int bytes = Varint.readLength(in, in.readableBytes());
                    values.add(readValue(in, in.readerIndex() + bytes));
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Request(id, service, method, values);
    }

    private static byte[] readValue(ByteBuf in, int end) {
        byte[] value = NOTHING;
        while (in.readerIndex() < end) {
            int tag = (int) Varint.read(in);
            if (tag == VALUE) {
                value = bytes(in, end);
            } else {
                ProtoFields.skip(in, tag, end);
            }
        }
        ProtoFields.expectEnd(in, end);
        return value;
    }

    private static byte[] bytes(ByteBuf in, int end) {
        byte[] bytes = new byte[Varint.readLength(in, end - in.readerIndex())];
        in.readBytes(bytes);
        return bytes;
    }

    static Reply readReply(ByteBuf in) {
        int end = in.writerIndex();
        long id = 0;
        byte[] result = NOTHING;
        RPCXException error = null;
        while (in.isReadable()) {
            int tag = (int) Varint.read(in);
            switch (tag) {
                case ID -> id = Varint.read(in);
                case RESULT -> result = bytes(in, end);
                case ERROR -> error = WireError.read(Unpooled.wrappedBuffer(bytes(in, end)));
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Reply(id, result, error);
    }

    /** @param types names for people, one for each value */
    static ByteBuf request(long id, String service, String method, List<String> types, List<byte[]> values) {
        ByteBuf out = Unpooled.buffer();
        out.writeInt(0);
        ProtoFields.writeNumber(out, 1, id);
        ProtoFields.writeText(out, 2, service);
        ProtoFields.writeText(out, 3, method);
        ByteBuf parameter = Unpooled.buffer();
        for (int i = 0; i < values.size(); i++) {
            parameter.clear();
            ProtoFields.writeText(parameter, 1, types.get(i));
            writeBytes(parameter, VALUE, values.get(i));
            out.writeByte(PARAMETER);
            Varint.write(out, parameter.readableBytes());
            out.writeBytes(parameter);
        }
        return out.setInt(0, out.readableBytes() - LENGTH_BYTES);
    }

    static ByteBuf reply(long id, byte @Nullable [] result, @Nullable RPCXException error) {
        ByteBuf out = Unpooled.buffer();
        out.writeInt(0);
        ProtoFields.writeNumber(out, 1, id);
        if (result != null) {
            writeBytes(out, RESULT, result);
        }
        if (error != null) {
            ByteBuf body = Unpooled.buffer();
            WireError.write(body, error);
            out.writeByte(ERROR);
            Varint.write(out, body.readableBytes());
            out.writeBytes(body);
        }
        return out.setInt(0, out.readableBytes() - LENGTH_BYTES);
    }

    private static void writeBytes(ByteBuf out, int tag, byte[] bytes) {
        if (bytes.length > 0) {
            out.writeByte(tag);
            Varint.write(out, bytes.length);
            out.writeBytes(bytes);
        }
    }
}
