package dev.rpcx.internal.ledger;

/** Kinds of what a peer can make a server or a client hold. Each of them is counted by a {@link Ledger}. */
public enum Resource {
    /** Bytes of requests that are not whole, or whose handlers have not ended. */
    REQUEST_BYTES,

    /**
     * Bytes of memory that the objects take which large requests and items have been read into, estimated, until their
     * handlers have ended.
     */
    OBJECT_BYTES,

    /** Bytes of replies that wait for a reader. At a client, replies that no caller has taken. */
    REPLY_BYTES,

    /** Bytes that stand in a socket's queue because the peer does not read them, where they are more than a little. */
    QUEUE_BYTES,

    /**
     * Part of {@link #REPLY_BYTES} that belongs to connections whose peers do not read. It is no additional memory, but
     * it has a pool of its own, which is full before that of all replies is. So peers that do not read push each other
     * out, and leave room for those that do.
     */
    UNREAD_REPLY_BYTES,

    /** Bytes of stream items that have arrived and that no subscriber has taken. */
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

    /** Connections that have an account. */
    CONNECTIONS,

    /** Places for calls that connections have created; a place is used again and again. */
    CALLS,

    /** Calls under way: those whose request is not whole, whose handler has not ended, or whose reply has not left. */
    HANDLERS,

    /** Counted handlers that still run though their connections have ended. */
    ORPHANS,

    /** Streams that have not ended, in either direction. */
    STREAMS,

    /** Timers that are set. */
    TIMERS;

    /**
     * Says whether a full pool pushes out the greediest instead of refusing the next. It does so where a peer delays
     * this side, and nothing smaller than a connection can be refused. See {@link Claim}.
     */
    boolean isClaimed() {
        return this == QUEUE_BYTES || this == UNREAD_REPLY_BYTES || this == FRAME_BYTES;
    }

    /** Says whether a connection in good order holds some of this kind while no call is under way. */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == TABLE_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
