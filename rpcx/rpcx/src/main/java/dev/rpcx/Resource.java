package dev.rpcx;

/** What a peer can make a server or a client hold. Every one of it is counted by a {@link Ledger}. */
enum Resource {
    /** Bytes of requests that are not whole, or whose handlers have not ended. */
    REQUEST_BYTES,

    /** Memory of what large requests and items have been read into, estimated, until their handlers have ended. */
    OBJECT_BYTES,

    /** Bytes that go out and wait for a reader: replies, and what stands in a socket's queue. At a client, replies that no caller has taken. */
    REPLY_BYTES,

    /** Bytes of stream items that have arrived and that nobody has taken. */
    ITEM_BYTES_IN,

    /** Bytes of stream items that go out and have not reached the socket's queue. */
    ITEM_BYTES_OUT,

    /** Bytes of buffers that nothing uses now, kept for what comes next. */
    KEPT_BYTES,

    /** Bytes of frames that have begun to arrive and whose ends are missing, where they are more than a little. */
    FRAME_BYTES,

    /** Connections that have been taken. */
    CONNECTIONS,

    /** Places for calls that a connection has made; a place is used again and again. */
    CALLS,

    /** Calls under way: not whole, with a handler, or with a reply that has not left. */
    HANDLERS,

    /** Streams that have not ended, in either direction. */
    STREAMS,

    /** Timers that are set. */
    TIMERS;

    /** Whether a connection in good order holds some of it while no call is under way. */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
