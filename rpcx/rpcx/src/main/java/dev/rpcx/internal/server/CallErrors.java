package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Words;
import dev.rpcx.internal.ThrowableText;

/**
 * Makes the errors that callers get, on both wires: the code, the text, and whether the handler has run. Thread-safe.
 */
final class CallErrors {
    /** Text of the error NOT_FOUND, with which a connection refuses a call of a method that is not published. */
    static final String NOT_PUBLISHED = "no such service or method";

    private CallErrors() {}

    /** Returns the error for a call whose time was already over when a thread began to work on the call. */
    static RPCXException late() {
        return RPCXException.refused(
                RPCXException.Code.DEADLINE_EXCEEDED, "the call's time was over before the handler started");
    }

    /**
     * Returns the error for a call whose arguments could not be read.
     *
     * @param t what was thrown when they were read; if it is an {@link RPCXException}, it is returned unchanged
     */
    static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** Returns the error for a call that was cancelled before its handler began. */
    static RPCXException gone() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the caller is gone");
    }

    /** Returns the error for a call whose handler cannot start any more, because the server is closing. */
    static RPCXException closing() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server is closing");
    }

    static RPCXException unreadable(Throwable e) {
        return RPCXException.refused(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + ThrowableText.wireWords(e));
    }

    /**
     * Makes the error for a call whose handler or interceptor has thrown something. The error has the code and the
     * message of what was thrown, but does not name its class. It says that the handler has not run only if an
     * interceptor ended the call before the handler started; the handler then does not start later either.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, HandledContext context) {
        return failed(thrown, hasRun(method, context));
    }

    /**
     * Makes the error for a call whose result cannot be sent. An interceptor may have made the result, so the error
     * says whether the handler has run.
     */
    static RPCXException unsendable(RPCXException.Code code, String text, ServerMethod method, HandledContext context) {
        return ended(code, text, hasRun(method, context));
    }

    private static boolean hasRun(ServerMethod method, HandledContext context) {
        return method.chain() == null || context.barHandler();
    }

    /**
     * Makes the error for a call whose handler has thrown something. The error has the code and the message of what was
     * thrown, but does not name its class: see {@link Words}. It says that the handler has run.
     */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun) {
        try {
            return asSeenByCaller(thrown, hasRun);
        } catch (Throwable worse) {
            // methods of the exception itself have thrown: the caller gets an answer nevertheless
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
