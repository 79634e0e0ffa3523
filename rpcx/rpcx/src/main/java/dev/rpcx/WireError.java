package dev.rpcx;

import io.netty.buffer.ByteBuf;

/** The error message of both wires: code, text, whether executed. */
final class WireError {
    /** A text beyond this is cut: an error always fits one frame. */
    private static final int MAX_TEXT = 2000;

    private static final int CODE = 1;
    private static final int TEXT = 2;
    private static final int EXECUTED = 3;

    private WireError() {}

    static void write(ByteBuf out, RPCXException error) {
        String text = String.valueOf(error.getMessage());
        ProtoFields.writeNumber(out, CODE, error.code().number());
        ProtoFields.writeText(out, TEXT, text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) : text);
        ProtoFields.writeNumber(out, EXECUTED, error.executed().number());
    }

    static RPCXException read(ByteBuf in) {
        int end = in.writerIndex();
        int code = 0;
        String text = "";
        int executed = 0;
        while (in.isReadable()) {
            int tag = (int) Varint.read(in);
            switch (tag) {
                case CODE << 3 -> code = (int) Varint.read(in);
                case TEXT << 3 | 2 -> text = ProtoFields.text(in, end);
                case EXECUTED << 3 -> executed = (int) Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new RPCXException(RPCXException.Code.of(code), text, RPCXException.Executed.of(executed));
    }
}
