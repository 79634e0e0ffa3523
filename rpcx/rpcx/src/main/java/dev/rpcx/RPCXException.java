package dev.rpcx;

import dev.rpcx.internal.Given;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown by proxies if a call has failed. It says why, and whether the handler was executed. A handler may throw it to
 * choose the code that its caller gets. It has no stack trace, since that of a connection's thread would say nothing
 * about the call. Applications should not extend this class: only the code and the message of a handler's exception
 * reach the caller.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Maximum number of wrappers that {@link #cause} removes from an exception. Usually there are only a few. */
    private static final int MAX_CAUSES = 32;

    /**
     * Says what went wrong. The constants have the order of their numbers on the wire, which never change: add new
     * codes at the end.
     */
    public enum Code {
        /**
         * The caller gave up the call. A client also uses this code if one of its interceptors has returned a result of
         * a wrong type, or has thrown a checked exception that the method does not declare.
         */
        CANCELLED,
        /** No result came within the time of the call. */
        DEADLINE_EXCEEDED,
        /** The server cannot be reached or is closing, or the connection ended while the call was in flight. */
        UNAVAILABLE,
        /** The server has no such service or no such method. The code does not say which of the two. */
        NOT_FOUND,
        /** The request cannot be understood, or breaks a rule of the service. */
        INVALID,
        /**
         * The handler, or an interceptor of the server, threw an exception that is not an {@link RPCXException}. The
         * message is that of the exception.
         */
        HANDLER_FAILED,
        /** The request, the result or the metadata exceed a limit. */
        TOO_LARGE,
        /** Too many calls are under way, or the calls under way take too many bytes. */
        OVERLOADED,
        /** The caller is not known, or is not allowed to make this call. */
        UNAUTHENTICATED,
        /** The peer broke the rules of the wire. */
        PROTOCOL
    }

    /**
     * Says whether the handler was started, which a caller has to know before it tries again. The constants have the
     * order of their numbers on the wire.
     */
    public enum Executed {
        /** The handler was never started: trying again is safe. */
        NOT_EXECUTED,
        /** The handler was started. */
        EXECUTED,
        /** The request has been sent, but no answer has come that says whether the handler was started. */
        MAYBE
    }

    private final Code code;
    private final Executed executed;

    /**
     * Creates an exception that a handler throws to end the call with this code and message.
     *
     * @param message text that the caller gets, or null to use the name of the code
     */
    public RPCXException(Code code, @Nullable String message) {
        this(code, message, Executed.EXECUTED, null);
    }

    /**
     * Returns an exception with which a server's interceptor refuses a call before it proceeds. The call ends with this
     * code and message, not executed. If the exception is thrown after the handler has started, the caller gets
     * {@link Executed#EXECUTED} instead.
     *
     * @param message text that the caller gets, or null to use the name of the code
     */
    public static RPCXException refused(Code code, @Nullable String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null);
    }

    /**
     * Creates an exception for a client's interceptor or a test.
     *
     * @param message text of the exception, or null to use the name of the code
     * @param executed whether the handler of the call was started
     * @param cause cause, for logs of this process only: it is never sent
     */
    public RPCXException(Code code, @Nullable String message, Executed executed, @Nullable Throwable cause) {
        // a null message would be sent as the text "null"
        super(message == null && code != null ? code.name() : message, cause, false, false);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Given.notNull(executed, "executed", "one of RPCXException.Executed");
    }

    /** Returns why the call failed. */
    public final Code code() {
        return code;
    }

    /** Returns whether the handler was started. */
    public final Executed executed() {
        return executed;
    }

    /**
     * Returns the exception with which a stage has failed, without the {@link CompletionException}s that dependent
     * stages have wrapped around it. At most 32 of them are removed, since causes may form a cycle.
     */
    public static Throwable cause(Throwable thrown) {
        Throwable t = Given.notNull(thrown, "thrown", "what a stage has failed with");
        for (int i = 0; i < MAX_CAUSES && t instanceof CompletionException; i++) {
            Throwable cause = t.getCause();
            if (cause == null) {
                return t;
            }
            t = cause;
        }
        return t;
    }

    @Override
    public final String getMessage() {
        return String.valueOf(super.getMessage());
    }

    @Override
    public final String toString() {
        return "RPCXException: " + code + " (" + executed + "): " + getMessage();
    }
}
