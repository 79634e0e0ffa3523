package dev.rpcx;

import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * A call that brought no result: what went wrong, and whether the handler was executed. Thrown by proxies; a handler
 * may throw it to choose the code that its caller sees. Carries no stack trace of the connection's threads, which would
 * say nothing about the call. Others have no reason to extend it: of a handler's exception its caller is told the code
 * and the message alone.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Stages that hang on each other wrap an exception once, so a few are all that there ever are. */
    private static final int MAX_CAUSES = 32;

    /**
     * What went wrong. New codes are added at the end: their order is that of their numbers on the wire, which never
     * change.
     */
    public enum Code {
        /** The caller gave the call up. */
        CANCELLED,
        /** No result within the time given. */
        DEADLINE_EXCEEDED,
        /** The server cannot be reached, is closing, or the connection ended with the call under way. */
        UNAVAILABLE,
        /** No such service or method; the two look alike. */
        NOT_FOUND,
        /** The request cannot be understood, or breaks a rule of the service. */
        INVALID,
        /** The handler threw something that is not an {@link RPCXException}: the message is its message. */
        HANDLER_FAILED,
        /** Request, result or metadata above a limit. */
        TOO_LARGE,
        /** Too many calls or bytes under way. */
        OVERLOADED,
        /** Who calls is not known, or may not call. */
        UNAUTHENTICATED,
        /** The peer broke the rules of the wire. */
        PROTOCOL
    }

    /** Whether the handler ran: what a caller has to know before it tries again. Their order is that of the wire's. */
    public enum Executed {
        /** The handler was never started: trying again is safe. */
        NOT_EXECUTED,
        /** The handler was started. */
        EXECUTED,
        /** The request left this process, and no word came back. */
        MAYBE
    }

    private final Code code;
    private final Executed executed;

    /**
     * For a handler: ends the call with this code and message.
     *
     * @param message what the caller is told; null for the name of the code
     */
    public RPCXException(Code code, @Nullable String message) {
        this(code, message, Executed.EXECUTED, null);
    }

    /**
     * For a server's interceptor, before it proceeds: ends the call with this code and message, and tells the caller
     * that the handler was not executed. Once the handler has been entered it arrives as {@link Executed#EXECUTED},
     * whoever throws it.
     */
    public static RPCXException refused(Code code, @Nullable String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null);
    }

    /**
     * For a client's interceptor, or a test: a call that has ended in this way.
     *
     * @param message null for the name of the code
     * @param cause for whoever logs this; never sent
     */
    public RPCXException(Code code, @Nullable String message, Executed executed, @Nullable Throwable cause) {
        // a text that is missing would be sent as the word null
        super(message == null && code != null ? code.name() : message, cause, false, false);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Given.notNull(executed, "executed", "one of RPCXException.Executed");
    }

    /** Why the call failed. */
    public final Code code() {
        return code;
    }

    /** Whether the handler ran: what to know before the call is sent again. */
    public final Executed executed() {
        return executed;
    }

    /**
     * What a stage has failed with, without the {@link CompletionException}s that stages which hang on it have put
     * around it: 32 at most, since causes may go round in a circle.
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
