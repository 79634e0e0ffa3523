package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/**
 * Error of a call that this side has ended, without an answer from the server. It says nothing about the server. Its
 * reason decides whether another connection or another instance may get the call. An error that a server has sent or a
 * handler has thrown never has this class. Callers get a plain {@link RPCXException} instead, from
 * {@link #asPublicException}.
 */
final class LocalFailure extends RPCXException {
    private static final long serialVersionUID = 1L;

    /** Reason for which this side has ended the call. */
    enum Why {
        /** The connection takes no new calls, or has ended. No byte of the request has been sent. */
        NOT_SENT,
        /**
         * As many calls are in flight on the connection as its server takes or this side allows, or this side has no
         * more room for requests that wait for the connection.
         */
        FULL,
        /**
         * The server does not take the call: the request is larger than the largest message that the server takes, or
         * the server's method has another shape, for example another kind of result.
         */
        UNFIT,
        /**
         * This side has no memory for what the server sends, either as the answer to this call or on the call's
         * connection.
         */
        NO_ROOM,
        /** This side's event loop was held up while the call's time passed. Nobody knows how the call has ended. */
        UNHEARD
    }

    private final Why why;

    private LocalFailure(Why why, Code code, String message, Executed executed) {
        super(code, message, executed, null);
        this.why = why;
    }

    /** Creates an error with the reason {@link Why#NOT_SENT}. Another connection may take the call. */
    static LocalFailure notSent(Code code, String message) {
        return new LocalFailure(Why.NOT_SENT, code, message, Executed.NOT_EXECUTED);
    }

    /** Creates an error with the reason {@link Why#FULL}. Another connection may take the call. */
    static LocalFailure full(String message) {
        return new LocalFailure(Why.FULL, Code.OVERLOADED, message, Executed.NOT_EXECUTED);
    }

    /** Creates an error with the reason {@link Why#UNFIT}. Another instance may take the call. */
    static LocalFailure unfit(Code code, String message) {
        return new LocalFailure(Why.UNFIT, code, message, Executed.NOT_EXECUTED);
    }

    /**
     * Creates an error with the reason {@code NO_ROOM}: this side has no memory for the answer that the server has
     * given. That is not the server's fault, and another attempt would not help.
     */
    static LocalFailure noRoom(String message) {
        return noRoom(message, Executed.EXECUTED);
    }

    /**
     * Creates an error with the reason {@code NO_ROOM}: a connection ends or fails for lack of memory.
     *
     * @param executed what is known of the call's execution
     */
    static LocalFailure noRoom(String message, Executed executed) {
        return new LocalFailure(Why.NO_ROOM, Code.OVERLOADED, message, executed);
    }

    /**
     * Creates an error with the reason {@code UNHEARD}. The call's time has passed while the event loop was held up, or
     * the loop has not said how the call has ended.
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
     * Returns the error for a caller. An error of this class becomes a plain RPCXException, since callers' logs and
     * metrics show the name of an error's class, and this class is internal. If there is no memory for that, the error
     * is returned unchanged.
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
