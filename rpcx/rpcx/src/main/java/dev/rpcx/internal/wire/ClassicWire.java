package dev.rpcx.internal.wire;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes the messages of the classic wire, which are in Protobuf. In front of each message stands its
 * length in four bytes, high byte first. The messages come from figure 5 of the paper that {@link dev.rpcx.RPCXClient}
 * names; the numbers of the fields are RPCX's own.
 *
 * <pre>{@code
 * message RPCXRequest { int64 id = 1; string service = 2; string method = 3; repeated Parameter parameters = 4; }
 * message Parameter   { string type = 1; bytes value = 2; uint32 number = 3; }
 * message RPCXReply   { int64 id = 1; bytes result = 2; RPCXError error = 3; }
 * }</pre>
 */
public final class ClassicWire {
    /**
     * A request that has been decoded. The values of the parameters are slices of the message, not copies. The names of
     * the parameters' types are dropped, so that no class is ever loaded by a name that a peer has sent.
     *
     * @param numbers one number for each element of {@code values}: the parameter number that the request gives; the
     *     position of the element, counted from 1, if the request gives no number; -1 if the number does not fit an
     *     {@code int}
     */
    public record Request(long id, String service, String method, List<ByteBuf> values, List<Integer> numbers) {}

    /**
     * A reply that has been decoded. {@code result} is an empty array if the reply has no result, and {@code error} is
     * null if the reply has no error.
     */
    public record Reply(long id, byte[] result, @Nullable RPCXException error) {}

    static final int MAX_PARAMETERS = 255;

    /**
     * Maximum number of fields in a message, including the fields of the messages inside it. A request with 255
     * parameters has at most 1023 fields that RPCX knows. Without this limit, a message could consist of millions of
     * tiny fields, which take long to read.
     */
    static final int MAX_FIELDS = 4096;

    private static final int ID = 1 << 3;
    private static final int SERVICE = 2 << 3 | 2;
    private static final int METHOD = 3 << 3 | 2;
    private static final int PARAMETER = 4 << 3 | 2;
    private static final int VALUE = 2 << 3 | 2;
    private static final int NUMBER = 3 << 3;
    private static final int RESULT = 2 << 3 | 2;
    private static final int ERROR = 3 << 3 | 2;

    private ClassicWire() {}

    /** Reads the id of a call from the first field of a message. Returns null if the first field is not an id. */
    public static @Nullable Long id(ByteBuf begin) {
        return Varint.read(begin) == ID ? Long.valueOf(Varint.read(begin)) : null;
    }

    /**
     * Returns true if a reply contains only an id and a result. Such a reply shows that the call was executed.
     *
     * @param begin the first bytes of the reply, from which the id has been read already
     * @param length length in bytes of the entire reply, which begins at index 0 of {@code begin}
     */
    public static boolean isResult(ByteBuf begin, int length) {
        return begin.isReadable() && Varint.read(begin) == RESULT && Varint.read(begin) == length - begin.readerIndex();
    }

    /**
     * Decodes a request. The values of the parameters are not copied.
     *
     * @throws WireFault if the message is malformed, if it has more parameters than {@link #MAX_PARAMETERS}, or if it
     *     has more fields than {@link #MAX_FIELDS}
     */
    public static Request readRequest(ByteBuf in) {
        ProtoFields.Counted fields = new ProtoFields.Counted(MAX_FIELDS);
        int end = in.writerIndex();
        long id = 0;
        ByteBuf service = Unpooled.EMPTY_BUFFER;
        ByteBuf method = Unpooled.EMPTY_BUFFER;
        List<ByteBuf> values = new ArrayList<>();
        List<Integer> numbers = new ArrayList<>();
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case ID -> id = Varint.read(in);
                case SERVICE -> service = bytes(in, end);
                case METHOD -> method = bytes(in, end);
                case PARAMETER -> {
                    if (values.size() == MAX_PARAMETERS) {
                        throw new WireFault("more than " + MAX_PARAMETERS + " parameters");
                    }
                    readParameter(bytes(in, end), fields, values, numbers);
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Request(id, name(service), name(method), values, numbers);
    }

    /**
     * Decodes the name of a service or a method. A name of more than 255 bytes becomes the empty text. Nothing is
     * published under an empty name, so the request finds no method.
     */
    private static String name(ByteBuf bytes) {
        return bytes.readableBytes() > Wire.MAX_NAME_BYTES ? "" : bytes.toString(StandardCharsets.UTF_8);
    }

    private static void readParameter(
            ByteBuf in, ProtoFields.Counted fields, List<ByteBuf> values, List<Integer> numbers) {
        int end = in.writerIndex();
        ByteBuf value = Unpooled.EMPTY_BUFFER;
        long number = 0;
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case VALUE -> value = bytes(in, end);
                case NUMBER -> number = Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        values.add(value);
        numbers.add(number == 0 ? values.size() : number == (int) number ? (int) number : -1);
    }

    /**
     * Reads the content of a field as a slice of the message. If the content were copied, a peer could use up memory by
     * repeating a field many times.
     */
    private static ByteBuf bytes(ByteBuf in, int end) {
        return in.readSlice(Varint.readLength(in, end - in.readerIndex(), "a field of a classic message"));
    }

    /**
     * Decodes a reply, and copies the result out of the message.
     *
     * @throws WireFault if the message is malformed, or if it has more fields than {@link #MAX_FIELDS}
     */
    public static Reply readReply(ByteBuf in) {
        ProtoFields.Counted fields = new ProtoFields.Counted(MAX_FIELDS);
        int end = in.writerIndex();
        long id = 0;
        ByteBuf result = Unpooled.EMPTY_BUFFER;
        ByteBuf error = null;
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case ID -> id = Varint.read(in);
                case RESULT -> result = bytes(in, end);
                case ERROR -> error = bytes(in, end);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Reply(id, ByteBufUtil.getBytes(result), error == null ? null : WireError.read(error, fields));
    }

    /**
     * Encodes a request, with the length of the message in front.
     *
     * @param types name of the type of each value, which only people read
     * @param numbers for each element of {@code values}, the number of its parameter. A number is left out of the
     *     message if it is 0, or if it is the position of the element, counted from 1.
     */
    public static ByteBuf request(
            long id, String service, String method, List<String> types, List<Integer> numbers, List<byte[]> values) {
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
            int number = numbers.get(i);
            if (number != i + 1) {
                ProtoFields.writeNumber(parameter, 3, number);
            }
            out.writeByte(PARAMETER);
            Varint.write(out, parameter.readableBytes());
            out.writeBytes(parameter);
        }
        return out.setInt(0, out.readableBytes() - ClassicFrames.LENGTH_BYTES);
    }

    /**
     * Encodes a reply, with the length of the message in front. {@code result} is null if the reply has no result, and
     * {@code error} is null if the reply has no error.
     */
    public static byte[] reply(long id, @Nullable ByteBuf result, @Nullable RPCXException error) {
        ByteBuf out = Unpooled.buffer();
        out.writeInt(0);
        ProtoFields.writeNumber(out, 1, id);
        if (result != null && result.isReadable()) {
            out.writeByte(RESULT);
            Varint.write(out, result.readableBytes());
            out.writeBytes(result);
        }
        if (error != null) {
            ByteBuf body = Unpooled.buffer();
            WireError.write(body, error);
            out.writeByte(ERROR);
            Varint.write(out, body.readableBytes());
            out.writeBytes(body);
        }
        return ByteBufUtil.getBytes(out.setInt(0, out.readableBytes() - ClassicFrames.LENGTH_BYTES));
    }

    private static void writeBytes(ByteBuf out, int tag, byte[] bytes) {
        if (bytes.length > 0) {
            out.writeByte(tag);
            Varint.write(out, bytes.length);
            out.writeBytes(bytes);
        }
    }
}
