package dev.rpcx.internal.wire;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;

/**
 * Settings of one side, as its SETTINGS frame gives them. A value that the frame does not give has the protocol's
 * default.
 *
 * @param maxMessageBytes size in bytes of the largest message that this side takes, with all its parts; default 4 MiB
 * @param maxCalls maximum number of calls under way at a time on the connection, up to 4096, which is also the default
 * @param defaultMicros time in microseconds that a request has if it carries no time; default 10 s
 */
public record Settings(int maxMessageBytes, int maxCalls, long defaultMicros) {
    public static final int MAX_MESSAGE = 1;
    public static final int MAX_CALLS = 2;
    public static final int DEFAULT_MICROS = 3;

    public static final Settings INITIAL = new Settings(Wire.MAX_MESSAGE_BYTES, Wire.MAX_SLOTS, 10_000_000);

    public static Settings read(ByteBuf in) {
        int end = in.writerIndex();
        long maxMessage = INITIAL.maxMessageBytes;
        long maxCalls = INITIAL.maxCalls;
        long defaultMicros = INITIAL.defaultMicros;
        while (in.isReadable()) {
            int tag = ProtoFields.tag(in);
            switch (tag) {
                case MAX_MESSAGE << 3 -> maxMessage = Varint.read(in);
                case MAX_CALLS << 3 -> maxCalls = Varint.read(in);
                case DEFAULT_MICROS << 3 -> defaultMicros = Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Settings(
                (int) bounded(maxMessage, INITIAL.maxMessageBytes, Integer.MAX_VALUE),
                (int) bounded(maxCalls, INITIAL.maxCalls, Wire.MAX_SLOTS),
                bounded(defaultMicros, INITIAL.defaultMicros, Long.MAX_VALUE));
    }

    /**
     * Returns a setting for which the peer has sent {@code said}: at most {@code max}, and {@code initial} if
     * {@code said} is 0, which means not given. A negative {@code said} is a large unsigned number.
     */
    private static long bounded(long said, long initial, long max) {
        return said == 0 ? initial : said < 0 ? max : Math.min(said, max);
    }

    public void write(ByteBuf out) {
        ProtoFields.writeNumber(out, MAX_MESSAGE, maxMessageBytes);
        ProtoFields.writeNumber(out, MAX_CALLS, maxCalls);
        ProtoFields.writeNumber(out, DEFAULT_MICROS, defaultMicros);
    }
}
