package dev.rpcx.internal.wire;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes the error message of both wires. The message has the code of an error, its text, whether the call
 * was executed, the details of the error, and the metadata of the reply.
 */
public final class WireError {
    /**
     * Maximum number of characters in the text of an error; a longer text is cut. An error must fit into one frame, and
     * the errors of many calls can be in memory at the same time.
     */
    private static final int MAX_TEXT = 2000;

    /** Text of an error for which the server has sent no text. */
    private static final String NO_TEXT = "the server has given no reason";

    private static final char REPLACED = '\uFFFD';

    private static final int CODE = 1;
    private static final int TEXT = 2;
    private static final int EXECUTED = 3;
    private static final int DETAIL = 4;
    private static final int METADATA = 5;

    private static final int DETAIL_NAME = 1;
    private static final int DETAIL_MESSAGE = 2;
    private static final int DETAIL_DECLARED = 3;

    private WireError() {}

    public static void write(ByteBuf out, RPCXException error) {
        String text = error.getMessage();
        ProtoFields.writeNumber(out, CODE, number(error.code()));
        ProtoFields.writeText(out, TEXT, cut(text));
        ProtoFields.writeNumber(out, EXECUTED, number(error.executed()));
        for (RPCXException.Detail detail : error.details()) {
            ByteBuf encoded = Unpooled.buffer();
            ProtoFields.writeText(encoded, DETAIL_NAME, detail.name());
            if (detail.message().length > 0) {
                writeBytes(encoded, DETAIL_MESSAGE, Unpooled.wrappedBuffer(detail.message()));
            }
            ProtoFields.writeNumber(encoded, DETAIL_DECLARED, detail.isDeclared() ? 1 : 0);
            writeBytes(out, DETAIL, encoded);
        }
        if (!error.metadata().isEmpty()) {
            out.writeByte(METADATA << 3 | 2);
            MetadataFields.write(out, error.metadata());
        }
    }

    private static void writeBytes(ByteBuf out, int field, ByteBuf bytes) {
        out.writeByte(field << 3 | 2);
        Varint.write(out, bytes.readableBytes());
        out.writeBytes(bytes);
    }

    /** Decodes an error of the native wire, on which an error is always a single frame. */
    public static RPCXException read(ByteBuf in) {
        return read(in, new ProtoFields.Counted(Wire.MAX_FRAME_BYTES));
    }

    /** Decodes an error that is a part of another message. {@code fields} counts the fields of the entire message. */
    public static RPCXException read(ByteBuf in, ProtoFields.Counted fields) {
        return read(in, fields, true);
    }

    /**
     * Decodes an error of the server of this process, which is about to be sent on in another form. Its text may have
     * line breaks and control characters, unlike one that {@link #read(ByteBuf)} returns.
     */
    public static RPCXException readToSendOn(ByteBuf in) {
        return read(in, new ProtoFields.Counted(Wire.MAX_FRAME_BYTES), false);
    }

    private static RPCXException read(ByteBuf in, ProtoFields.Counted fields, boolean onOneLine) {
        int end = in.writerIndex();
        long code = 0;
        String text = "";
        long executed = 0;
        List<RPCXException.Detail> details = List.of();
        int detailBytes = 0;
        Metadata metadata = Metadata.EMPTY;
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case CODE << 3 -> code = Varint.read(in);
                case TEXT << 3 | 2 -> text = ProtoFields.text(in, end, "text of an error");
                case EXECUTED << 3 -> executed = Varint.read(in);
                case DETAIL << 3 | 2 -> {
                    ByteBuf encoded = bytes(in, end, "detail of an error");
                    int left = details.size() < RPCXException.MAX_DETAILS
                            ? RPCXException.MAX_DETAIL_BYTES - detailBytes
                            : 0;
                    RPCXException.Detail detail = readDetail(encoded, fields, left);
                    if (detail != null) {
                        details = details.isEmpty() ? new ArrayList<>() : details;
                        details.add(detail);
                        detailBytes += ByteBufUtil.utf8Bytes(detail.name()) + detail.message().length;
                    }
                }
                case METADATA << 3 | 2 -> {
                    ByteBuf encoded = bytes(in, end, "metadata of an error");
                    if (encoded.readableBytes() <= Metadata.MAX_REPLY_BYTES) {
                        metadata = MetadataFields.entries(encoded, encoded.readableBytes());
                    }
                }
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        String told = text.isEmpty() ? NO_TEXT : cut(text);
        return new RPCXException(
                        codeOf(known(code)), onOneLine ? onOneLine(told) : told, executedOf(known(executed)), null)
                .withDetails(details)
                .withMetadata(metadata);
    }

    /**
     * Decodes a detail of an error. The bytes of the detail are copied only if the detail is kept.
     *
     * @param maxBytes number of bytes that the name and the message may have together
     * @return null if the detail is not kept, because it is too large or has no name, or a name that is too long
     */
    private static RPCXException.@Nullable Detail readDetail(ByteBuf in, ProtoFields.Counted fields, int maxBytes) {
        int end = in.writerIndex();
        ByteBuf nameBytes = Unpooled.EMPTY_BUFFER;
        ByteBuf message = Unpooled.EMPTY_BUFFER;
        long declared = 0;
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case DETAIL_NAME << 3 | 2 -> nameBytes = bytes(in, end, "name of a detail");
                case DETAIL_MESSAGE << 3 | 2 -> message = bytes(in, end, "message of a detail");
                case DETAIL_DECLARED << 3 -> declared = Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        if (!nameBytes.isReadable() || nameBytes.readableBytes() > Wire.MAX_NAME_BYTES) {
            return null;
        }
        String name = nameBytes.toString(StandardCharsets.UTF_8);
        // A name that is not UTF-8 becomes longer, since U+FFFD takes three bytes.
        int bytes = ByteBufUtil.utf8Bytes(name);
        return bytes > Wire.MAX_NAME_BYTES || bytes + message.readableBytes() > maxBytes
                ? null
                : new RPCXException.Detail(name, ByteBufUtil.getBytes(message), declared != 0);
    }

    private static ByteBuf bytes(ByteBuf in, int end, String what) {
        return in.readSlice(Varint.readLength(in, end - in.readerIndex(), what));
    }

    public static int number(RPCXException.Code code) {
        return code.ordinal() + 1;
    }

    /**
     * Returns the code with the given number. If the number is unknown, for example because a later version has added
     * it, the result is {@code HANDLER_FAILED}. No static array of codes is used: if the array could not be created,
     * for lack of memory or stack, the initialization of this class would fail, and the class could never be used.
     */
    private static RPCXException.Code codeOf(int number) {
        return switch (number) {
            case 1 -> RPCXException.Code.CANCELLED;
            case 2 -> RPCXException.Code.DEADLINE_EXCEEDED;
            case 3 -> RPCXException.Code.UNAVAILABLE;
            case 4 -> RPCXException.Code.NOT_FOUND;
            case 5 -> RPCXException.Code.INVALID;
            case 7 -> RPCXException.Code.TOO_LARGE;
            case 8 -> RPCXException.Code.OVERLOADED;
            case 9 -> RPCXException.Code.UNAUTHENTICATED;
            case 10 -> RPCXException.Code.PROTOCOL;
            default -> RPCXException.Code.HANDLER_FAILED;
        };
    }

    public static int number(RPCXException.Executed executed) {
        return executed.ordinal() + 1;
    }

    private static RPCXException.Executed executedOf(int number) {
        return switch (number) {
            case 1 -> RPCXException.Executed.NOT_EXECUTED;
            case 2 -> RPCXException.Executed.EXECUTED;
            default -> RPCXException.Executed.MAYBE;
        };
    }

    private static String cut(String text) {
        return text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) : text;
    }

    /**
     * Replaces line breaks and control characters. With them, a peer could forge lines in logs, or control a terminal.
     */
    private static String onOneLine(String text) {
        StringBuilder changed = null;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (Character.isISOControl(c) || c == '\u2028' || c == '\u2029') {
                if (changed == null) {
                    changed = new StringBuilder(text);
                }
                changed.setCharAt(i, REPLACED);
            }
        }
        return changed == null ? text : changed.toString();
    }

    /**
     * Returns the number as an {@code int}, or 0 if the number does not fit. No code and no value of {@code Executed}
     * has the number 0. A cast alone could turn an unknown number into a known one.
     */
    private static int known(long number) {
        return number == (int) number ? (int) number : 0;
    }
}
