package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Words;
import dev.rpcx.internal.ThrowableText;

/**
 * Errors that callers of both wires are told: it decides which code and words they see, and whether the error says that
 * the handler has run. Any thread.
 */
final class CallErrors {
    private CallErrors() {}

    /** Error for a call that comes to a thread after its time. */
    static RPCXException late() {
        return RPCXException.refused(
                RPCXException.Code.DEADLINE_EXCEEDED, "the time was over before the handler started");
    }

    /** Error for a call of which reading the arguments has thrown this. */
    static RPCXException unread(Throwable t) {
        return t instanceof RPCXException refused ? refused : unreadable(t);
    }

    /** Error for a call that was cancelled before its handler began. */
    static RPCXException gone() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the caller is gone");
    }

    /** Error for a caller whose handler comes too late to start. */
    static RPCXException closing() {
        return RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server is closing");
    }

    static RPCXException unreadable(Throwable e) {
        return RPCXException.refused(
                ThrowableText.isOfMemory(e) ? RPCXException.Code.OVERLOADED : RPCXException.Code.INVALID,
                "the request cannot be read: " + ThrowableText.wireWords(e));
    }

    /**
     * As {@link #failed(Throwable)}, but the error says correctly whether the handler has run. Only an interceptor
     * before the handler can say that it has not run, and from then on the handler does not start.
     */
    static RPCXException failed(Throwable thrown, ServerMethod method, HandledContext context) {
        return failed(thrown, hasRun(method, context));
    }

    /**
     * Makes the error that the caller sees for a result that cannot be sent. The result may be an interceptor's own, so
     * the error says whether the handler has run, as that of {@code failed} does.
     */
    static RPCXException unsendable(RPCXException.Code code, String text, ServerMethod method, HandledContext context) {
        return ended(code, text, hasRun(method, context));
    }

    private static boolean hasRun(ServerMethod method, HandledContext context) {
        return method.chain() == null || context.barHandler();
    }

    /**
     * Makes the error that the caller sees for what a handler threw: its code and message, never its class. See
     * {@link Words}.
     */
    static RPCXException failed(Throwable thrown) {
        return failed(thrown, true);
    }

    private static RPCXException failed(Throwable thrown, boolean hasRun) {
        try {
            return asTold(thrown, hasRun);
        } catch (Throwable worse) {
            // the exception's own methods fail: the caller has an answer all the same
            return ended(RPCXException.Code.HANDLER_FAILED, "the handler failed", hasRun);
        }
    }

    private static RPCXException ended(RPCXException.Code code, String text, boolean hasRun) {
        return hasRun ? new RPCXException(code, text) : RPCXException.refused(code, text);
    }

    private static RPCXException asTold(Throwable thrown, boolean hasRun) {
        Throwable t = RPCXException.cause(thrown);
        if (t instanceof RPCXException e) {
            return ended(e.code(), e.getMessage(), hasRun || e.executed() != RPCXException.Executed.NOT_EXECUTED);
        }
        String message = Words.of(t);
        return ended(RPCXException.Code.HANDLER_FAILED, message == null ? "the handler failed" : message, hasRun);
    }
}
