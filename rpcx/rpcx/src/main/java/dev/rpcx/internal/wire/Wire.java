package dev.rpcx.internal.wire;

/** Numbers of the native wire, such as the types of frames. The file rpcx/spec/wire.md defines them. */
public final class Wire {
    /**
     * The text "RPCX" in ASCII, with which every native connection begins. A classic connection begins with the length
     * of a frame, which is never this large. So a server knows the wire from the first byte.
     */
    public static final int MAGIC = 0x5250_4358;

    public static final int VERSION = 1;

    /**
     * Largest number that a version of the native wire will ever have. The version is the byte behind the text "RPCX"
     * at the beginning of a connection. A larger byte could be a character, for example in an HTTP request whose method
     * begins with "RPCX".
     */
    static final int MAX_VERSION = 8;

    public static final int PREFACE_BYTES = 8;

    /**
     * Maximum value of a frame's length field, in bytes. The value is small, so that calls whose frames wait behind
     * another frame do not wait for long.
     */
    public static final int MAX_FRAME_BYTES = 16 * 1024;

    /**
     * Number of bytes between a frame's length field and its payload: one byte with the type and flags of the frame,
     * and four bytes with the call id. The length field counts these five bytes too.
     */
    public static final int HEAD_BYTES = 5;

    public static final int MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEAD_BYTES;

    /**
     * Maximum number of bytes in front of a frame's payload: three for the length field, one for the type and flags of
     * the frame, and four for the call id.
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
    public static final int SCHEMA = 15;

    public static final int TYPE_MASK = 0x0F;

    /**
     * Flag of a frame whose message continues in PART frames. After a DICTIONARY or SCHEMA frame with this flag,
     * another frame of its type follows.
     */
    public static final int MORE = 0x10;

    /** Flag of a REQUEST or NOTICE frame that gives the method by name, and not by number. */
    public static final int NAMED = 0x20;

    /**
     * Flag of a REQUEST, NOTICE or REPLY frame that has metadata in front of its body. A server sets the flag on a
     * REPLY only if the client has said in its SETTINGS that it reads such metadata.
     */
    public static final int METADATA = 0x40;

    /**
     * Flag of a REQUEST or NOTICE frame that gives the time left for its call. Without this flag, the call has the
     * connection's default time.
     */
    public static final int TIME = 0x80;

    /**
     * Mask for the slot of a call in the low 16 bits of a call id. The high 16 bits
     * distinguish successive calls in the same slot.
     */
    public static final int SLOT_MASK = 0xFFFF;

    public static final int MAX_SLOTS = 4096;
    public static final int MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
    public static final int MAX_NAME_BYTES = 255;
    public static final int MAX_DICTIONARY = 4096;

    private Wire() {}
}
