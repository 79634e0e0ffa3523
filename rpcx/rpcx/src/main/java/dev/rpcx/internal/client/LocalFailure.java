package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import org.jspecify.annotations.Nullable;

/**
 * The error of a call that this side has ended without an answer from the server. The reason, {@link Why}, decides
 * whether another connection or another instance can get the call. The error says nothing about the server's health,
 * with one exception: if the reason is {@link Why#UNFIT}, and another instance takes the call, the error counts as a
 * failure of the instance that did not take it. Callers get a plain {@link RPCXException} instead, from
 * {@link #asPublicException}.
 */
final class LocalFailure extends RPCXException {
    private static final long serialVersionUID = 1L;

    /** The reason why this side has ended a call. */
    enum Why {
        /**
         * The connection has ended or takes no new calls. On the native wire, nothing of the request has been sent. On
         * the classic wire, a part of the request may have been sent.
         */
        NOT_SENT,
        /**
         * There is no room for another call. Either the connection has its maximum number of calls in flight, or it
         * only finishes its calls because it is being replaced, or, on the classic wire, this side holds too many bytes
         * of waiting requests.
         */
        FULL,
        /**
         * The server does not take this call. Either the request is too large, or the server's method has other
         * parameters, another result or another schema.
         */
        UNFIT,
        /** This side has no memory left for what the server sends on the call's connection. */
        NO_ROOM,
        /**
         * The event loop of this side was held up until the call's time was over. This side does not know how the
         * server has ended the call.
         */
        UNHEARD
    }

    private final Why why;

    private LocalFailure(Why why, Code code, String message, Executed executed) {
        super(code, message, executed, null);
        this.why = why;
    }

    /**
     * Creates the error of a call that a connection could not send: {@link Why#NOT_SENT}. Another connection can take
     * the call.
     */
    static LocalFailure notSent(Code code, String message) {
        return new LocalFailure(Why.NOT_SENT, code, message, Executed.NOT_EXECUTED);
    }

    /**
     * Creates the error of a call that a connection does not take because of {@link Why#FULL}. Another connection can
     * take the call.
     */
    static LocalFailure full(String message) {
        return new LocalFailure(Why.FULL, Code.OVERLOADED, message, Executed.NOT_EXECUTED);
    }

    /**
     * Creates the error of a call that a connection does not take because it is being replaced: {@link Why#FULL}. The
     * new connection can take the call.
     */
    static LocalFailure replaced(String message) {
        return new LocalFailure(Why.FULL, Code.UNAVAILABLE, message, Executed.NOT_EXECUTED);
    }

    /**
     * Creates the error of a call that the server does not take: {@link Why#UNFIT}. Another instance can take the call.
     */
    static LocalFailure unfit(Code code, String message) {
        return new LocalFailure(Why.UNFIT, code, message, Executed.NOT_EXECUTED);
    }

    /**
     * Creates the error of a call whose answer this side could not store, read or pass on to the caller, for lack of
     * memory: {@link Why#NO_ROOM}. The error says EXECUTED. Another attempt would not help.
     */
    static LocalFailure noRoom(String message) {
        return noRoom(message, Executed.EXECUTED);
    }

    /**
     * Creates the error of a call that fails for lack of memory: {@link Why#NO_ROOM}. Usually the call's connection has
     * ended, or could not be made, for the same reason.
     *
     * @param executed whether the server has executed the call, as far as this side knows
     */
    static LocalFailure noRoom(String message, Executed executed) {
        return new LocalFailure(Why.NO_ROOM, Code.OVERLOADED, message, executed);
    }

    /** Creates the error of a call that the event loop has not ended in time: {@link Why#UNHEARD}. */
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
     * Converts a {@link LocalFailure} to a plain {@code RPCXException}, because logs and metrics show the class name of
     * an error, and {@code LocalFailure} is internal. Any other error is returned unchanged. If there is no memory for
     * a new exception, the given error is returned.
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
