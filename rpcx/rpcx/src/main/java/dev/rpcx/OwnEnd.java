package dev.rpcx;

import org.jspecify.annotations.Nullable;

/**
 * End of a call of which this side knows by itself, without the server's word: it says nothing of the server, and
 * decides whether the call may go another way. What a server says and a handler throws is never one. Callers are told a
 * plain {@link RPCXException} instead, by {@link #told}.
 */
final class OwnEnd extends RPCXException {
    private static final long serialVersionUID = 1L;

    /** What this side knows. */
    enum Why {
        /** The connection takes no new calls, or has ended; no byte of the request has left. */
        LEFT,
        /** As many calls are under way on the connection as its server takes, or this side keeps for it. */
        FULL,
        /** The server takes no such call: its messages are smaller, or its method has another shape. */
        UNFIT,
        /** This side has no memory for what the server sends: for the answer to this call, or on its connection. */
        NO_ROOM,
        /** This side's event loop was held up as the call's time went by, and nobody knows how the call has ended. */
        UNHEARD
    }

    private final Why why;

    private OwnEnd(Why why, Code code, String message, Executed executed) {
        super(code, message, executed, null);
        this.why = why;
    }

    /** See {@link Why#LEFT}: another connection may take the call. */
    static OwnEnd left(Code code, String message) {
        return new OwnEnd(Why.LEFT, code, message, Executed.NOT_EXECUTED);
    }

    /** See {@link Why#FULL}: another connection may take the call. */
    static OwnEnd full(String message) {
        return new OwnEnd(Why.FULL, Code.OVERLOADED, message, Executed.NOT_EXECUTED);
    }

    /** See {@link Why#UNFIT}: another instance may take the call. */
    static OwnEnd unfit(Code code, String message) {
        return new OwnEnd(Why.UNFIT, code, message, Executed.NOT_EXECUTED);
    }

    /** The server has answered in vain. That says nothing against it, and to ask it once more would not help. */
    static OwnEnd noRoom(String message) {
        return noRoom(message, Executed.EXECUTED);
    }

    /** The same where the connection ends for want of memory, whatever has become of the call there. */
    static OwnEnd noRoom(String message, Executed executed) {
        return new OwnEnd(Why.NO_ROOM, Code.OVERLOADED, message, executed);
    }

    /** A call whose time has gone by while the event loop was held up, or of whose end the loop has said nothing. */
    static OwnEnd unheard(String message, Executed executed) {
        return new OwnEnd(Why.UNHEARD, Code.DEADLINE_EXCEEDED, message, executed);
    }

    static boolean is(Why why, @Nullable Throwable thrown) {
        return thrown instanceof OwnEnd own && own.why == why;
    }

    static boolean isNoRoom(@Nullable Throwable thrown) {
        return is(Why.NO_ROOM, thrown);
    }

    /**
     * The same end as a caller is told of it, whose logs and metrics name classes. Where there is no memory left to say
     * it so, it stays as it is.
     */
    static RPCXException told(RPCXException end) {
        if (!(end instanceof OwnEnd)) {
            return end;
        }
        try {
            return new RPCXException(end.code(), end.getMessage(), end.executed(), null);
        } catch (Throwable noMemory) {
            return end;
        }
    }
}
