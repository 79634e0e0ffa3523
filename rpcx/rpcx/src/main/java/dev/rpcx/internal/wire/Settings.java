package dev.rpcx.internal.wire;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;

/**
 * Settings of one side of a native connection, which this side sends in its SETTINGS frame. If the frame lacks a
 * setting, the protocol's default applies.
 *
 * @param maxMessageBytes maximum size in bytes of a body that this side accepts, over all frames of the message; the
 *     fields in front of the body of a request do not count; default 4 MiB
 * @param maxCalls maximum number of calls under way on the connection; at most 4096, which is also the default; only
 *     the value of a server is used
 * @param defaultMicros time in microseconds that a call has if its request does not give a time; default 10 s; only the
 *     value of a client is used
 * @param readsReplyMetadata whether this side reads metadata in front of the body of a REPLY; default no; only the
 *     value of a client is used
 */
public record Settings(int maxMessageBytes, int maxCalls, long defaultMicros, boolean readsReplyMetadata) {
    public static final int MAX_MESSAGE = 1;
    public static final int MAX_CALLS = 2;
    public static final int DEFAULT_MICROS = 3;
    public static final int READS_REPLY_METADATA = 4;

    public static final Settings INITIAL = new Settings(Wire.MAX_MESSAGE_BYTES, Wire.MAX_SLOTS, 10_000_000);

    /** Creates the settings of a side that reads no metadata of a REPLY. */
    public Settings(int maxMessageBytes, int maxCalls, long defaultMicros) {
        this(maxMessageBytes, maxCalls, defaultMicros, false);
    }

    public static Settings read(ByteBuf in) {
        int end = in.writerIndex();
        long maxMessage = INITIAL.maxMessageBytes;
        long maxCalls = INITIAL.maxCalls;
        long defaultMicros = INITIAL.defaultMicros;
        long readsReplyMetadata = 0;
        while (in.isReadable()) {
            int tag = ProtoFields.tag(in);
            switch (tag) {
                case MAX_MESSAGE << 3 -> maxMessage = Varint.read(in);
                case MAX_CALLS << 3 -> maxCalls = Varint.read(in);
                case DEFAULT_MICROS << 3 -> defaultMicros = Varint.read(in);
                case READS_REPLY_METADATA << 3 -> readsReplyMetadata = Varint.read(in);
                default -> ProtoFields.skip(in, tag, end);
            }
        }
        return new Settings(
                (int) bounded(maxMessage, INITIAL.maxMessageBytes, Integer.MAX_VALUE),
                (int) bounded(maxCalls, INITIAL.maxCalls, Wire.MAX_SLOTS),
                bounded(defaultMicros, INITIAL.defaultMicros, Long.MAX_VALUE),
                readsReplyMetadata != 0);
    }

    /**
     * Returns the value of a setting for which the peer has sent {@code said}. If {@code said} is 0, this counts as
     * not given, and the result is {@code initial}. The result is never more than {@code max}. A negative {@code said}
     * counts as a large unsigned number.
     */
    private static long bounded(long said, long initial, long max) {
        return said == 0 ? initial : said < 0 ? max : Math.min(said, max);
    }

    public void write(ByteBuf out) {
        ProtoFields.writeNumber(out, MAX_MESSAGE, maxMessageBytes);
        ProtoFields.writeNumber(out, MAX_CALLS, maxCalls);
        ProtoFields.writeNumber(out, DEFAULT_MICROS, defaultMicros);
        ProtoFields.writeNumber(out, READS_REPLY_METADATA, readsReplyMetadata ? 1 : 0);
    }
}
