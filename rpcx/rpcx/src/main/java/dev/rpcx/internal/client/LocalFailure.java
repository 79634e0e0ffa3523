package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/**
 * Error of a call that this side has ended by itself, without the server's word. It says nothing of the server, and
 * decides whether the call may go another way. An error that a server has sent or a handler has thrown is never of this
 * class. Callers are told a plain {@link RPCXException} instead, by {@link #asPublicException}.
 */
final class LocalFailure extends RPCXException {
    private static final long serialVersionUID = 1L;

    /** Why this side has ended the call. */
    enum Why {
        /** The connection takes no new calls, or has ended; no byte of the request has left. */
        NOT_SENT,
        /**
         * As many calls are under way on the connection as its server takes or this side allows, or this side has no
         * more room for requests that wait there.
         */
        FULL,
        /**
         * The server does not take the call: the request is above the largest message that it takes, or its method has
         * another shape.
         */
        UNFIT,
        /** This side has no memory for what the server sends: for the answer to this call, or on its connection. */
        NO_ROOM,
        /** This side's event loop was held up while the call's time passed, and nobody knows how the call has ended. */
        UNHEARD
    }

    private final Why why;

    private LocalFailure(Why why, Code code, String message, Executed executed) {
        super(code, message, executed, null);
        this.why = why;
    }

    /** See {@link Why#NOT_SENT}: another connection may take the call. */
    static LocalFailure notSent(Code code, String message) {
        return new LocalFailure(Why.NOT_SENT, code, message, Executed.NOT_EXECUTED);
    }

    /** See {@link Why#FULL}: another connection may take the call. */
    static LocalFailure full(String message) {
        return new LocalFailure(Why.FULL, Code.OVERLOADED, message, Executed.NOT_EXECUTED);
    }

    /** See {@link Why#UNFIT}: another instance may take the call. */
    static LocalFailure unfit(Code code, String message) {
        return new LocalFailure(Why.UNFIT, code, message, Executed.NOT_EXECUTED);
    }

    /**
     * This side has no memory for the answer that the server has given. That says nothing against the server, and
     * asking once more would not help.
     */
    static LocalFailure noRoom(String message) {
        return noRoom(message, Executed.EXECUTED);
    }

    /** The same where a connection ends or fails for want of memory, with what is known of the call's execution. */
    static LocalFailure noRoom(String message, Executed executed) {
        return new LocalFailure(Why.NO_ROOM, Code.OVERLOADED, message, executed);
    }

    /**
     * Error of a call whose time has passed while the event loop was held up, or of whose end the loop has said
     * nothing.
     */
    static LocalFailure unheard(String message, Executed executed) {
        return new LocalFailure(Why.UNHEARD, Code.DEADLINE_EXCEEDED, message, executed);
    }

    static boolean is(Why why, @Nullable Throwable thrown) {
        return thrown instanceof LocalFailure own && own.why == why;
    }

    static boolean isNoRoom(@Nullable Throwable thrown) {
        return is(Why.NO_ROOM, thrown);
    }

    /**
     * The same error as a plain RPCXException, for callers, whose logs and metrics name classes. Where there is no
     * memory for that, the error stays as it is.
     */
    static RPCXException asPublicException(RPCXException end) {
        if (!(end instanceof LocalFailure)) {
            return end;
        }
        try {
            return new RPCXException(end.code(), end.getMessage(), end.executed(), null);
        } catch (Throwable noMemory) {
            return end;
        }
    }
}
