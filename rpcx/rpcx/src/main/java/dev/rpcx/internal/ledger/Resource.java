package dev.rpcx.internal.ledger;

/** Kinds of things that a peer can make a server or a client hold. A {@link Ledger} counts each kind. */
public enum Resource {
    /**
     * Bytes of requests. A server counts a request from the arrival of the first bytes, usually until the handler ends.
     * The server does not count what {@link UnchargedAllowance} allows. A client counts a large request while the
     * request waits for a connection or waits to be sent, and as long as the call holds the request's buffer.
     */
    REQUEST_BYTES,

    /**
     * Estimated memory, in bytes, of the Java objects of large requests and stream items at a server. The objects of a
     * request are counted until the handler ends, those of an item until the subscriber's {@code onNext} ends.
     */
    OBJECT_BYTES,

    /**
     * Bytes of replies. A server counts a reply while the reply waits to be sent. A client counts a reply until the
     * caller has taken it. A client also counts stream items here, until they have arrived completely.
     */
    REPLY_BYTES,

    /** Bytes in a socket's output queue that the peer does not read. A queue of at most 4 KiB is not counted. */
    QUEUE_BYTES,

    /**
     * The part of {@link #REPLY_BYTES} that belongs to connections whose peers do not read. This part has a lower
     * limit, so that such connections are ended before replies to other peers are refused.
     */
    UNREAD_REPLY_BYTES,

    /** Bytes of stream items that have arrived at a server and that no subscriber has taken. */
    ITEM_BYTES_IN,

    /** Bytes of stream items that wait to be put into the socket's output queue. */
    ITEM_BYTES_OUT,

    /** Bytes of buffers that have grown beyond their initial size and that are kept for later use. */
    KEPT_BYTES,

    /**
     * Bytes of tables. A server counts the tables in which a connection finds its calls, but not the first 64 slots of
     * a table; a call is refused if its table cannot grow. A client counts the entries of a server's method dictionary
     * for which no proxy existed when the dictionary arrived, and the members of schemas while they arrive. The limit
     * for tables is separate from the limit for {@link #KEPT_BYTES}, so that kept buffers leave room for tables.
     */
    TABLE_BYTES,

    /**
     * Bytes of frames, TLS records and TLS handshakes that have arrived only in part. A part of at most 4 KiB is not
     * counted.
     */
    FRAME_BYTES,

    /** Open connections. Each of them has an {@link Account} in the ledger. */
    CONNECTIONS,

    /**
     * Places for calls. A place is the memory that a server needs for one call: the call's objects and its initial
     * buffer. A place can stay taken after the call is over, and a connection can keep a place for later calls.
     */
    CALLS,

    /**
     * Handlers that run, except those on event loops. The server counts these handlers, and the ledger only reads the
     * count.
     */
    HANDLERS,

    /**
     * Handlers that still run after their connections have closed, and that count in the admission limits of their
     * methods.
     */
    ORPHANS,

    /** Streams that have not ended, in either direction. A client counts only the streams that the client sends. */
    STREAMS,

    /** Timers that connections have set. Most timers of a client's connections are not counted. */
    TIMERS;

    /**
     * Returns whether bytes of this kind are charged by a {@link Claim}. If there is no room for such bytes,
     * connections are ended. For any other kind, the charge is refused.
     */
    boolean isClaimed() {
        return this == QUEUE_BYTES || this == UNREAD_REPLY_BYTES || this == FRAME_BYTES;
    }

    /**
     * Returns whether a connection can hold some of this kind while it has no call under way. For example, a connection
     * can then hold {@link #KEPT_BYTES}.
     */
    boolean isHeldAtRest() {
        return this == KEPT_BYTES || this == TABLE_BYTES || this == CONNECTIONS || this == CALLS || this == TIMERS;
    }
}
