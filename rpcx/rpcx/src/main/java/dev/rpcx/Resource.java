package dev.rpcx;

/** What a peer can make a server or a client hold. Every one of it is counted by a {@link Ledger}. */
enum Resource {
    /** Bytes of requests that are not whole, or whose handlers have not ended. */
    REQUEST_BYTES,

    /** Memory of what large requests and items have been read into, estimated, until their handlers have ended. */
    OBJECT_BYTES,

    /** Bytes of replies that wait for a reader. At a client, replies that no caller has taken. */
    REPLY_BYTES,

    /** Bytes that stand in a socket's queue because the peer does not read them, where they are more than a little. */
    QUEUE_BYTES,

    /**
     * The part of {@link #REPLY_BYTES} that belongs to connections whose peers let their queues stand: no memory beside
     * it, but a pool of its own, which is full before that of all replies is. So those who do not read push each other
     * out, and leave room for those who do.
     */
    UNREAD_REPLY_BYTES,

    /** Bytes of stream items that have arrived and that nobody has taken. */
    ITEM_BYTES_IN,

    /** Bytes of stream items that go out and have not reached the socket's queue. */
    ITEM_BYTES_OUT,

    /** Bytes of buffers that have grown and are kept from one use to the next. */
    KEPT_BYTES,

    /**
     * Bytes of the tables by which a connection finds its calls, where they are more than a little. A call is refused
     * where these do not fit, so they have a pool of their own, which buffers that are kept do not fill.
     */
    TABLE_BYTES,

    /**
     * Bytes of frames, and of TLS records and handshakes, that have begun to arrive and whose ends are missing, where
     * they are more than a little.
     */
    FRAME_BYTES,

    /** Connections that have been taken. */
    CONNECTIONS,

    /** Places for calls that a connection has made; a place is used again and again. */
    CALLS,

    /** Calls under way: not whole, with a handler, or with a reply that has not left. */
    HANDLERS,

    /** Handlers that run, and are counted, though their connections have ended. */
    ORPHANS,

    /** Streams that have not ended, in either direction. */
    STREAMS,

    /** Timers that are set. */
    TIMERS;

    /**
     * Whether a pool that is full pushes out the greediest instead of refusing the next: where a peer lets this side
     * wait, and nothing smaller than a connection can be refused. See {@link Claim}.
     */
    boolean isClaimed() {
        return this == QUEUE_BYTES || this == UNREAD_REPLY_BYTES || this == FRAME_BYTES;
    }

    /** Whether a connection in good order holds some of it while no call is under way. */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == TABLE_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
