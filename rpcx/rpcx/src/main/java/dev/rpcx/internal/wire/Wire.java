package dev.rpcx.internal.wire;

/** Numbers of the native wire. Source: rpcx/spec/wire.md. */
public final class Wire {
    /**
     * The bytes "RPCX". As the length of a classic frame this number would be far above any limit, which tells the two
     * wires apart.
     */
    public static final int MAGIC = 0x5250_4358;

    public static final int VERSION = 1;

    /**
     * Highest version that there will ever be. From 9 on the byte behind "RPCX" could be a character of a text, and an
     * HTTP request whose method begins with "RPCX" would be taken for a connection.
     */
    static final int MAX_VERSION = 8;

    public static final int PREFACE_BYTES = 8;

    /** Most that a frame's length field may say. Small enough that one fragment does not hold up the calls behind it. */
    public static final int MAX_FRAME_BYTES = 16 * 1024;

    /** Bytes of the head and the call id, which the length field counts before the payload. */
    public static final int HEAD_BYTES = 5;

    public static final int MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEAD_BYTES;

    /** Most bytes of a header: the length of the longest frame takes three. */
    public static final int MAX_HEADER_BYTES = 3 + HEAD_BYTES;

    public static final int SETTINGS = 1;
    public static final int DICTIONARY = 2;
    public static final int REQUEST = 3;
    public static final int NOTICE = 4;
    public static final int PART = 5;
    public static final int REPLY = 6;
    public static final int ERROR = 7;
    public static final int CANCEL = 8;
    public static final int ITEM = 9;
    public static final int END = 10;
    public static final int CREDIT = 11;
    public static final int GOAWAY = 12;
    public static final int PING = 13;
    public static final int PONG = 14;

    public static final int TYPE_MASK = 0x0F;

    /** More of this message follows in PART frames. */
    public static final int MORE = 0x10;

    /** The method is given by name. */
    public static final int NAMED = 0x20;

    /** Metadata stands before the body. */
    public static final int METADATA = 0x40;

    /** The remaining time is given; without it the connection's default holds. */
    public static final int TIME = 0x80;

    /** Mask of the slot, which is the low half of a call id; the high half is the slot's generation. */
    public static final int SLOT_MASK = 0xFFFF;

    public static final int MAX_SLOTS = 4096;
    public static final int MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
    public static final int MAX_NAME_BYTES = 255;
    public static final int MAX_DICTIONARY = 4096;

    private Wire() {}
}
