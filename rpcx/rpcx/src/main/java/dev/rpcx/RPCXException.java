package dev.rpcx;

import dev.rpcx.internal.Given;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Says why a call brought no result, and whether the handler was executed. Proxies throw it. A handler may throw it to
 * choose the code that its caller gets. It has no stack trace, since the stack of a thread that serves a connection
 * would say nothing about the call. Applications have no reason to extend this class: only the code and the message of
 * a handler's exception reach the caller.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Maximum number of wrappers that {@link #cause} removes from an exception. There are usually only a few, since
     * stages that depend on each other wrap an exception only once.
     */
    private static final int MAX_CAUSES = 32;

    /**
     * Says what went wrong. The order of the constants is that of their numbers on the wire, which never change. So new
     * codes are added at the end.
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
     * Says whether the handler was started. A caller has to know that before it tries again. The order of the constants
     * is that of their numbers on the wire.
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
     * Returns an exception that a server's interceptor throws before it proceeds. It ends the call with this code and
     * message, and says that the handler was not executed. If it is thrown after the handler has started, whoever
     * throws it, the caller gets {@link Executed#EXECUTED} instead.
     *
     * @param message text that the caller gets, or null to use the name of the code
     */
    public static RPCXException refused(Code code, @Nullable String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null);
    }

    /**
     * Creates an exception for a client's interceptor or a test. It stands for a call that has ended with this code and
     * message. The parameter {@code executed} says whether the handler of that call was started.
     *
     * @param message text of the exception, or null to use the name of the code
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

    /** Returns whether the handler was started. A caller has to know that before it sends the call again. */
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
