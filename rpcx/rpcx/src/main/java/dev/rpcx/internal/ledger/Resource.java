package dev.rpcx.internal.ledger;

/** Kinds of things that a peer can make a server or a client hold. A {@link Ledger} counts each kind. */
public enum Resource {
    /**
     * Bytes of requests that have not arrived completely, or whose handlers have not ended. At a client, bytes of large
     * requests that wait for a connection, that wait to be sent, or whose calls still hold the requests' buffers.
     */
    REQUEST_BYTES,

    /**
     * Estimated bytes of memory of the objects into which large requests and stream items have been read, until their
     * handlers have ended.
     */
    OBJECT_BYTES,

    /** Bytes of replies that wait until the peer reads them. At a client, bytes of replies that no caller has taken. */
    REPLY_BYTES,

    /** Bytes that stand in a socket's queue because the peer does not read them, if they are more than 4 KiB. */
    QUEUE_BYTES,

    /**
     * Part of {@link #REPLY_BYTES} that belongs to connections whose peers do not read. It is no additional memory, but
     * it has a separate pool, which is full before the pool of all replies is full. So if peers that do not read fill
     * this pool, their own connections are ended, and room remains for peers that read.
     */
    UNREAD_REPLY_BYTES,

    /** Bytes of stream items that have arrived and that no subscriber has taken. */
    ITEM_BYTES_IN,

    /** Bytes of stream items that are to be sent and have not reached the socket's queue. */
    ITEM_BYTES_OUT,

    /** Bytes of buffers that have grown and are kept for their next use. */
    KEPT_BYTES,

    /**
     * Bytes of tables. At a server, these are the tables by which a connection finds its calls; a table is counted if
     * it has more than 64 slots. At a client, these are the entries of the dictionary for methods that no proxy had
     * when the dictionary came. A server refuses a call if the table would have to grow for it, and cannot. So tables
     * have a separate pool, which kept buffers do not fill.
     */
    TABLE_BYTES,

    /**
     * Bytes of frames, TLS records and TLS handshakes that have begun to arrive and whose ends are missing, if they are
     * more than 4 KiB.
     */
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

    /**
     * Handlers that still run although their connections have ended, and that count in the admission limits of their
     * methods.
     */
    ORPHANS,

    /** Streams that have not ended, in either direction. */
    STREAMS,

    /** Timers that are set. */
    TIMERS;

    /**
     * Says whether a full pool of this kind ends the greediest connection, instead of refusing the amount that finds no
     * room. That is so for what is held because a peer delays it: to refuse such an amount would end a connection too.
     * See {@link Claim}.
     */
    boolean isClaimed() {
        return this == QUEUE_BYTES || this == UNREAD_REPLY_BYTES || this == FRAME_BYTES;
    }

    /** Says whether a connection in good order holds some of this kind even while no call is under way. */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == TABLE_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
