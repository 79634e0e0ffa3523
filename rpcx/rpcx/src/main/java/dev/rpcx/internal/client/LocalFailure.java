package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/**
 * Error of a call that this side has ended without an answer from the server. It says nothing about the server. The
 * reason decides whether another connection or another instance may get the call. Callers get a plain
 * {@link RPCXException} instead, from {@link #asPublicException}.
 */
final class LocalFailure extends RPCXException {
    private static final long serialVersionUID = 1L;

    /** Reason for which this side has ended the call. */
    enum Why {
        /** The connection takes no new calls, or has ended. No byte of the request has been sent. */
        NOT_SENT,
        /**
         * The connection has as many calls in flight as its server takes or this side allows, or this side has no more
         * room for waiting requests.
         */
        FULL,
        /**
         * The server does not take the call: the request is too large for it, or its method has another shape, for
         * example another kind of result.
         */
        UNFIT,
        /** This side has no memory for what the server sends on the call's connection. */
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
     * Creates an error with the reason {@code NO_ROOM}: this side has no memory for the server's answer. Another
     * attempt would not help.
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
     * Creates an error with the reason {@code UNHEARD}: the event loop was held up while the call's time passed, or has
     * not said how the call has ended.
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
     * Returns the error for a caller. An error of this class becomes a plain RPCXException, since logs and metrics show
     * the class, and this one is internal. Without memory for that, the error is returned unchanged.
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
