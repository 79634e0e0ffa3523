package dev.rpcx.internal.wire;

/** Numbers that the native wire fixes. Source: rpcx/spec/wire.md. */
public final class Wire {
    /**
     * "RPCX", with which a native connection begins. As a length of a classic frame it would be far above any limit, so
     * the first bytes tell the two wires apart.
     */
    public static final int MAGIC = 0x5250_4358;

    public static final int VERSION = 1;

    /**
     * Highest version that there will ever be. The version is the byte behind "RPCX". From 9 on it could be a character
     * of a text, such as an HTTP request whose method begins with "RPCX".
     */
    static final int MAX_VERSION = 8;

    public static final int PREFACE_BYTES = 8;

    /**
     * Largest value of a frame's length field, in bytes. It is small enough that one fragment does not hold up the
     * calls behind it.
     */
    public static final int MAX_FRAME_BYTES = 16 * 1024;

    /**
     * Number of bytes of the head and the call id. They stand between the length field and the payload, and the length
     * field counts them.
     */
    public static final int HEAD_BYTES = 5;

    public static final int MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEAD_BYTES;

    /**
     * Maximum number of bytes in front of a payload: three of the length field, and five of the head and the call id.
     */
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

    /** Flag: more of this message follows in PART frames. On a DICTIONARY frame: another DICTIONARY frame follows. */
    public static final int MORE = 0x10;

    /** Flag: the method is given by name. */
    public static final int NAMED = 0x20;

    /** Flag: metadata stands before the body. */
    public static final int METADATA = 0x40;

    /** Flag: the remaining time of the call is given. Without it the call has the connection's default time. */
    public static final int TIME = 0x80;

    /** Mask of the slot in a call id: its low 16 bits. The high 16 bits are the slot's generation. */
    public static final int SLOT_MASK = 0xFFFF;

    public static final int MAX_SLOTS = 4096;
    public static final int MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
    public static final int MAX_NAME_BYTES = 255;
    public static final int MAX_DICTIONARY = 4096;

    private Wire() {}
}
