package dev.rpcx;

import dev.rpcx.internal.Given;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if a call has failed. The exception says why the call has failed, and whether the handler was started. A
 * handler can throw this exception to choose the code and the message that its caller gets.
 *
 * <p>The exception has no stack trace, since the stack of a connection's thread would say nothing about the call.
 * Applications should not extend this class: only the code and the message of a handler's exception reach the caller.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Maximum number of nested {@link CompletionException}s that {@link #cause} unwraps. */
    private static final int MAX_CAUSES = 32;

    /**
     * Says why a call failed. The constants have the order of their numbers on the wire. These numbers never change,
     * so new constants have to be added at the end.
     */
    public enum Code {
        /**
         * The caller gave up the call. A call also fails with this code if an interceptor of the client returns a
         * result of a wrong type, or throws a checked exception that the client's method does not declare.
         */
        CANCELLED,
        /** The time of the call was over before a result came. */
        DEADLINE_EXCEEDED,
        /**
         * The server could not be reached, the server was closing, or the connection ended during the call. A client
         * also ends a call with this code if the client itself is closed, or if its circuit breaker is open.
         */
        UNAVAILABLE,
        /** The server has no such service, or the service has no such method. Both cases have the same code. */
        NOT_FOUND,
        /** The request or the result could not be understood, or the request broke a rule of the service. */
        INVALID,
        /**
         * The handler or an interceptor of the server threw an exception that is not an {@link RPCXException}, or the
         * result could not be sent. The caller gets the message of the exception, but a fixed text in these cases:
         *
         * <ul>
         *   <li>The virtual machine has written the message of a {@link NullPointerException}, and the message names a
         *       part of the code, for example a variable, a field or a method.
         *   <li>The exception is about classes that do not fit together, such as a {@link ClassCastException} or a
         *       {@link LinkageError}. This is so even if a programmer has written the message.
         * </ul>
         */
        HANDLER_FAILED,
        /** The request, the result or the metadata exceeded a limit. */
        TOO_LARGE,
        /** Too many calls were under way, or the calls under way took too many bytes. */
        OVERLOADED,
        /** The caller is not known, or is not allowed to make this call. */
        UNAUTHENTICATED,
        /** The other end of the connection broke a rule of the wire protocol. */
        PROTOCOL
    }

    /**
     * Says whether the handler of a failed call was started. A caller has to know this before trying the call again.
     * The constants have the order of their numbers on the wire.
     */
    public enum Executed {
        /** The handler was never started, so it is safe to try the call again. */
        NOT_EXECUTED,
        /**
         * Either the handler was started, or an interceptor of the server has ended the call with an
         * {@link RPCXException} that says EXECUTED or MAYBE. An exception that {@link RPCXException#refused} has
         * created says NOT_EXECUTED.
         */
        EXECUTED,
        /**
         * It is not known whether the handler was started, for example because the request was sent and no answer came.
         */
        MAYBE
    }

    private final Code code;
    private final Executed executed;

    /**
     * Creates an exception with which a handler ends its call. The caller gets this code and this message.
     *
     * @param message text that the caller gets, or null for the name of the code
     */
    public RPCXException(Code code, @Nullable String message) {
        this(code, message, Executed.EXECUTED, null);
    }

    /**
     * Returns an exception with which a server's interceptor refuses a call instead of running the handler. The caller
     * gets this code and this message, with {@link Executed#NOT_EXECUTED}. If the interceptor throws the exception
     * after the handler has started, the caller gets {@link Executed#EXECUTED} instead.
     *
     * @param message text that the caller gets, or null for the name of the code
     */
    public static RPCXException refused(Code code, @Nullable String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null);
    }

    /**
     * Creates an exception for a client's interceptor or for a test.
     *
     * @param message text of the exception, or null for the name of the code
     * @param executed whether the handler of the call was started
     * @param cause exception that led to this one, for the logs of this process only: the cause is never sent
     */
    public RPCXException(Code code, @Nullable String message, Executed executed, @Nullable Throwable cause) {
        // a null message would be sent as the text "null"
        super(message == null && code != null ? code.name() : message, cause, false, false);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Given.notNull(executed, "executed", "one of RPCXException.Executed");
    }

    /** Returns the reason why the call failed. */
    public final Code code() {
        return code;
    }

    /** Returns whether the handler of the call was started. */
    public final Executed executed() {
        return executed;
    }

    /**
     * Returns the exception inside the {@link CompletionException}s around {@code thrown}. A {@code CompletionStage}
     * puts this wrapper around the exception of an earlier stage. If {@code thrown} has no such wrapper, this method
     * returns {@code thrown} itself. At most 32 wrappers are removed, since causes can form a cycle.
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
