package dev.rpcx;

import dev.rpcx.internal.Given;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Tells why a call brought no result, and whether the handler was executed. Proxies throw it; a handler may throw it to
 * choose the code that its caller sees. It carries no stack trace, since that of a connection's thread would say
 * nothing about the call. Applications have no reason to extend it: only the code and the message of a handler's
 * exception reach the caller.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Most causes to unwrap. Stages that depend on each other wrap an exception only once, so there are but a few. */
    private static final int MAX_CAUSES = 32;

    /**
     * What went wrong. New codes are added at the end: the order of the constants is that of their numbers on the wire,
     * which never change.
     */
    public enum Code {
        /** The caller gave the call up. */
        CANCELLED,
        /** No result has come within the time of the call. */
        DEADLINE_EXCEEDED,
        /** The server cannot be reached, is closing, or the connection ended with the call under way. */
        UNAVAILABLE,
        /** The server has no such service or no such method; the code does not tell which of the two. */
        NOT_FOUND,
        /** The request cannot be understood, or breaks a rule of the service. */
        INVALID,
        /** The handler threw an exception that is not an {@link RPCXException}; the message is that exception's. */
        HANDLER_FAILED,
        /** The request, the result or the metadata are above a limit. */
        TOO_LARGE,
        /** Too many calls or bytes are under way. */
        OVERLOADED,
        /** The caller is not known, or may not make this call. */
        UNAUTHENTICATED,
        /** The peer broke the rules of the wire. */
        PROTOCOL
    }

    /**
     * Whether the handler was started, which a caller has to know before it tries again. The order of the constants is
     * that of their numbers on the wire.
     */
    public enum Executed {
        /** The handler was never started: trying again is safe. */
        NOT_EXECUTED,
        /** The handler was started. */
        EXECUTED,
        /** The request has left this process, and no answer has come that tells whether the handler was started. */
        MAYBE
    }

    private final Code code;
    private final Executed executed;

    /**
     * For a handler: ends the call with this code and message.
     *
     * @param message the text that the caller is told; null for the name of the code
     */
    public RPCXException(Code code, @Nullable String message) {
        this(code, message, Executed.EXECUTED, null);
    }

    /**
     * For a server's interceptor, before it proceeds: ends the call with this code and message, and tells the caller
     * that the handler was not executed. If it is thrown after the handler has been entered, the caller is told
     * {@link Executed#EXECUTED}, whoever throws it.
     */
    public static RPCXException refused(Code code, @Nullable String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null);
    }

    /**
     * For a client's interceptor, or a test: stands for a call that has ended in this way.
     *
     * @param message null for the name of the code
     * @param cause cause for a log of this process; never sent
     */
    public RPCXException(Code code, @Nullable String message, Executed executed, @Nullable Throwable cause) {
        // a null message would be sent as the text "null"
        super(message == null && code != null ? code.name() : message, cause, false, false);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Given.notNull(executed, "executed", "one of RPCXException.Executed");
    }

    /** Why the call failed. */
    public final Code code() {
        return code;
    }

    /** Whether the handler was started, which a caller has to know before it sends the call again. */
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
