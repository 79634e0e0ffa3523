package dev.rpcx.internal.wire;

import dev.rpcx.RPCXException;
import java.util.concurrent.TimeUnit;

/**
 * Makes the errors with which a connection ends, and has the texts of errors that both wires, or both sides, use.
 * Thread-safe.
 */
public final class ConnectionErrors {
    /** Text of an error for a server that is closing and begins no new calls. */
    public static final String SERVER_CLOSING = "the server is closing";

    /** Text of the error for a peer that has begun a frame and has not ended it in time. */
    public static final String LATE_FRAME = "a frame was begun and not ended in time";

    /** Text of the error for a peer that does not read what this side sends. */
    static final String UNREAD = "the peer does not read what it is sent";

    /** Text of the error for a connection, if this side has no memory for the first bytes of a TLS record. */
    static final String NO_ROOM_FOR_TLS = "no room for the first bytes of a TLS record that has not arrived in full";

    /** Text of the error for a server that answers with a TLS alert, while this side does not use TLS. */
    static final String PEER_USES_TLS =
            "the peer uses TLS, and this side does not (expected: TLS on both sides, or on neither)";

    /**
     * First two bytes of a TLS alert: the content type, and the major version. A server that uses TLS answers with an
     * alert to a client that does not. No message of either wire begins with these bytes. Source: RFC 8446, section
     * 5.1.
     */
    static final int TLS_ALERT = 0x1503;

    private ConnectionErrors() {}

    /** Returns the error for calls that perhaps were executed before the connection ended: the given code, MAYBE. */
    public static RPCXException brokenOff(RPCXException.Code code, String why) {
        return new RPCXException(code, why, RPCXException.Executed.MAYBE, null);
    }

    /**
     * Returns the error for a connection whose peer has begun a frame and has not ended it in time: PROTOCOL, with
     * MAYBE if calls are under way, and with NOT_EXECUTED otherwise.
     */
    static RPCXException lateFrame(boolean isBusy) {
        return new RPCXException(
                RPCXException.Code.PROTOCOL,
                LATE_FRAME,
                isBusy ? RPCXException.Executed.MAYBE : RPCXException.Executed.NOT_EXECUTED,
                null);
    }

    /** Returns the text of the error TOO_LARGE for a request of more bytes than the server takes. */
    public static String largeRequest(int bytes, int maxBytes) {
        return "a request of " + bytes + " bytes (expected: at most " + maxBytes + ")";
    }

    /** Returns the text of the error for a peer that has read nothing for the given time. */
    static String stuck(long nanos) {
        return "the peer has read nothing for " + TimeUnit.NANOSECONDS.toMillis(nanos) + " ms";
    }
}
