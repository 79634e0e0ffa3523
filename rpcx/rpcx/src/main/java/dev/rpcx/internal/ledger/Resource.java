package dev.rpcx.internal.ledger;

/** Kinds of things that a peer can make a server or a client hold. A {@link Ledger} counts each kind. */
public enum Resource {
    /**
     * Bytes of requests that have not arrived completely, or whose handlers have not ended. At a client, bytes of large
     * requests that wait for a connection, that wait to be sent, or whose calls still hold the requests' buffers.
     */
    REQUEST_BYTES,

    /**
     * Estimated memory, in bytes, of the objects of large requests and stream items, until their handlers have ended.
     */
    OBJECT_BYTES,

    /** Bytes of replies that wait until the peer reads them. At a client, bytes of replies that no caller has taken. */
    REPLY_BYTES,

    /** Bytes in a socket's queue that the peer does not read, if more than 4 KiB. */
    QUEUE_BYTES,

    /**
     * The part of {@link #REPLY_BYTES} of connections whose peers do not read. Its pool is smaller, so it is full
     * first: then these connections are ended, and room remains for peers that read.
     */
    UNREAD_REPLY_BYTES,

    /** Bytes of stream items that have arrived and that no subscriber has taken. */
    ITEM_BYTES_IN,

    /** Bytes of stream items that are to be sent and have not reached the socket's queue. */
    ITEM_BYTES_OUT,

    /** Bytes of buffers that have grown and are kept for their next use. */
    KEPT_BYTES,

    /**
     * Bytes of tables. At a server, the tables in which a connection finds its calls, if larger than 64 slots; a call
     * is refused if its table cannot grow. At a client, the dictionary entries of methods that no proxy had when the
     * dictionary arrived. A separate pool, so that kept buffers cannot fill it.
     */
    TABLE_BYTES,

    /** Bytes of incomplete frames, TLS records and TLS handshakes, if more than 4 KiB. */
    FRAME_BYTES,

    /** Connections that have an account. */
    CONNECTIONS,

    /** Places for calls that connections have created. A place is used for one call after another. */
    CALLS,

    /**
     * Handlers that run, except those on event loops. A server counts them itself, and the ledger only watches the
     * count.
     */
    HANDLERS,

    /** Handlers of closed connections that still run and count in the admission limits of their methods. */
    ORPHANS,

    /** Streams that have not ended, in either direction. */
    STREAMS,

    /** Timers that are set. */
    TIMERS;

    /**
     * Whether a full pool of this kind ends the greediest connection instead of refusing a charge, see {@link Claim}.
     */
    boolean isClaimed() {
        return this == QUEUE_BYTES || this == UNREAD_REPLY_BYTES || this == FRAME_BYTES;
    }

    /** Whether a connection may hold some of this kind while no call is under way. */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == TABLE_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
