package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Words;
import dev.rpcx.internal.ThrowableText;

/**
 * Makes errors that a server sends to its callers, on the native wire and on the classic wire. Each error has a code
 * and a text, and says whether the handler has run. Thread-safe.
 */
final class CallErrors {
    /** Text of the error NOT_FOUND for a call of a method that the server does not publish. */
    static final String NOT_PUBLISHED = "no such service or method";

    private CallErrors() {}

    /** Returns the error for a call whose deadline passed before a thread began to work on the call. */
    static RPCXException late() {
        return RPCXException.refused(
                RPCXException.Code.DEADLINE_EXCEEDED, "the call's time was over before the handler started");
    }

    /**
     * Returns the error for a call whose arguments could not be read.
     *
     * @param t exception that was thrown while the arguments were read; an {@link RPCXException}, such as that of
     *     {@link #late}, is returned unchanged
     */
    static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** Returns the error for a call that was cancelled before its handler started. */
    static RPCXException gone() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the caller is gone");
    }

    /** Returns the error for a call whose handler is not started, because the server is closing. */
    static RPCXException closing() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server is closing");
    }

    static RPCXException unreadable(Throwable e) {
        return RPCXException.refused(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + ThrowableText.wireWords(e));
    }

    /**
     * Returns the error for a call whose handler, interceptor or stream has failed with an exception. The error has the
     * code of an {@link RPCXException}, and repeats the exception's message unless {@link Words} replaces the message.
     * The error does not name the exception's class.
     *
     * <p>The error says that the handler has not run only if the method has interceptors and the call has ended before
     * the handler started. If the exception is an {@link RPCXException}, a further condition is that the exception says
     * that the call has not been executed. This method also prevents the handler from starting later.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, HandledContext context) {
        return failed(thrown, hasRun(method, context));
    }

    /**
     * Returns the error for a call whose result cannot be sent. The error says whether the handler has run, because an
     * interceptor can make a result without the handler.
     */
    static RPCXException unsendable(RPCXException.Code code, String text, ServerMethod method, HandledContext context) {
        return ended(code, text, hasRun(method, context));
    }

    private static boolean hasRun(ServerMethod method, HandledContext context) {
        return method.chain() == null || context.barHandler();
    }

    /**
     * Returns the error for a call whose handler has thrown an exception; the error says that the handler has run. The
     * error has the code of an {@link RPCXException}, and repeats the exception's message unless {@link Words} replaces
     * the message. The error does not name the exception's class.
     */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun) {
        try {
            return asSeenByCaller(thrown, hasRun);
        } catch (Throwable worse) {
            // A method of the exception itself has thrown. The caller nevertheless gets an answer.
            return ended(RPCXException.Code.HANDLER_FAILED, "the handler failed", hasRun);
        }
    }

    private static RPCXException ended(RPCXException.Code code, String text, boolean hasRun) {
        return hasRun ? new RPCXException(code, text) : RPCXException.refused(code, text);
    }

    private static RPCXException asSeenByCaller(Throwable thrown, boolean hasRun) {
        Throwable t = RPCXException.cause(thrown);
        if (t instanceof RPCXException e) {
            return ended(e.code(), e.getMessage(), hasRun || e.executed() != RPCXException.Executed.NOT_EXECUTED);
        }
        String message = Words.of(t);
        return ended(RPCXException.Code.HANDLER_FAILED, message == null ? "the handler failed" : message, hasRun);
    }
}
