package dev.rpcx;

/** Numbers of the native wire. Source: rpcx/spec/wire.md. */
final class Wire {
    /**
     * The bytes "RPCX". As the length of a classic frame this number would be far above any limit, which tells the two
     * wires apart.
     */
    static final int MAGIC = 0x5250_4358;

    static final int VERSION = 1;

    /**
     * Highest version that there will ever be. From 9 on the byte behind "RPCX" could be a character of a text, and an
     * HTTP request whose method begins with "RPCX" would be taken for a connection.
     */
    static final int MAX_VERSION = 8;

    static final int PREFACE_BYTES = 8;

    /** Most that a frame's length field may say. Small enough that one fragment does not hold up the calls behind it. */
    static final int MAX_FRAME_BYTES = 16 * 1024;

    /** Bytes of the head and the call id, which the length field counts before the payload. */
    static final int HEAD_BYTES = 5;

    static final int MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEAD_BYTES;

    /** Most bytes of a header: the length of the longest frame takes three. */
    static final int MAX_HEADER_BYTES = 3 + HEAD_BYTES;

    static final int SETTINGS = 1;
    static final int DICTIONARY = 2;
    static final int REQUEST = 3;
    static final int NOTICE = 4;
    static final int PART = 5;
    static final int REPLY = 6;
    static final int ERROR = 7;
    static final int CANCEL = 8;
    static final int ITEM = 9;
    static final int END = 10;
    static final int CREDIT = 11;
    static final int GOAWAY = 12;
    static final int PING = 13;
    static final int PONG = 14;

    static final int TYPE_MASK = 0x0F;

    /** More of this message follows in PART frames. */
    static final int MORE = 0x10;

    /** The method is given by name. */
    static final int NAMED = 0x20;

    /** Metadata stands before the body. */
    static final int METADATA = 0x40;

    /** The remaining time is given; without it the connection's default holds. */
    static final int TIME = 0x80;

    /** Mask of the slot, which is the low half of a call id; the high half is the slot's generation. */
    static final int SLOT_MASK = 0xFFFF;

    static final int MAX_SLOTS = 4096;
    static final int MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
    static final int MAX_NAME_BYTES = 255;
    static final int MAX_DICTIONARY = 4096;

    private Wire() {}
}
