package dev.rpcx.internal.wire;

import dev.rpcx.RPCXException;
import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;

/**
 * Encodes and decodes the error message of both wires. The message has the code of an error, its text, and whether the
 * call was executed.
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

    private WireError() {}

    public static void write(ByteBuf out, RPCXException error) {
        String text = error.getMessage();
        ProtoFields.writeNumber(out, CODE, number(error.code()));
        ProtoFields.writeText(out, TEXT, cut(text));
        ProtoFields.writeNumber(out, EXECUTED, number(error.executed()));
    }

    /** Decodes an error of the native wire, on which an error is always a single frame. */
    public static RPCXException read(ByteBuf in) {
        return read(in, new ProtoFields.Counted(Wire.MAX_FRAME_BYTES));
    }

    /** Decodes an error that is a part of another message. {@code fields} counts the fields of the entire message. */
    public static RPCXException read(ByteBuf in, ProtoFields.Counted fields) {
        int end = in.writerIndex();
        long code = 0;
        String text = "";
        long executed = 0;
        while (in.isReadable()) {
            int tag = fields.tag(in);
            switch (tag) {
                case CODE << 3 -> code = Varint.read(in);
                case TEXT << 3 | 2 -> text = ProtoFields.text(in, end, "text of an error");
                case EXECUTED << 3 -> executed = Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new RPCXException(
                codeOf(known(code)),
                text.isEmpty() ? NO_TEXT : onOneLine(cut(text)),
                executedOf(known(executed)),
                null);
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
