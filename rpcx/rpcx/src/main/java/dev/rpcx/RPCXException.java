package dev.rpcx;

import java.util.Objects;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * A call that brought no result: what went wrong, and whether the handler was executed. Thrown by proxies; a handler
 * may throw it to choose the code that its caller sees. Carries no stack trace of the connection's threads, which would
 * say nothing about the call.
 */
public final class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Stages that hang on each other wrap an exception once, so a few are all that there ever are. */
    private static final int MAX_CAUSES = 32;

    /** What went wrong. Numbers are part of the wire and never change. */
    public enum Code {
        /** The caller gave the call up. */
        CANCELLED(1),
        /** No result within the time given. */
        DEADLINE_EXCEEDED(2),
        /** The server cannot be reached, is closing, or the connection ended with the call under way. */
        UNAVAILABLE(3),
        /** No such service or method; the two look alike. */
        NOT_FOUND(4),
        /** The request cannot be understood, or breaks a rule of the service. */
        INVALID(5),
        /** The handler threw something that is not an {@link RPCXException}: the message is its message. */
        HANDLER_FAILED(6),
        /** Request, result or metadata above a limit. */
        TOO_LARGE(7),
        /** Too many calls or bytes under way. */
        OVERLOADED(8),
        /** Who calls is not known, or may not call. */
        UNAUTHENTICATED(9),
        /** The peer broke the rules of the wire. */
        PROTOCOL(10);

        private static final Code[] BY_NUMBER = new Code[values().length + 1];

        static {
            for (Code code : values()) {
                BY_NUMBER[code.number] = code;
            }
        }

        private final int number;

        Code(int number) {
            this.number = number;
        }

        int number() {
            return number;
        }

        /** A code that a later version added is an error of the handler's to this one. */
        static Code of(int number) {
            return number < 1 || number >= BY_NUMBER.length ? HANDLER_FAILED : BY_NUMBER[number];
        }
    }

    /** Whether the handler ran: what a caller has to know before it tries again. */
    public enum Executed {
        /** The handler was never started: trying again is safe. */
        NOT_EXECUTED,
        /** The handler was started. */
        EXECUTED,
        /** The request left this process, and no word came back. */
        MAYBE;

        int number() {
            return ordinal() + 1;
        }

        static Executed of(int number) {
            return number == 1 ? NOT_EXECUTED : number == 2 ? EXECUTED : MAYBE;
        }
    }

    /** What this side knows by itself of a call's end, without the server's word. */
    enum Own {
        /** The connection takes no new calls, or has ended; no byte of the request has left. */
        LEFT,
        /** As many calls are under way on the connection as its server takes, or this side keeps for it. */
        FULL,
        /** The server takes no such call: its messages are smaller, or its method has another shape. */
        UNFIT,
        /** This side has no memory for what the server sends: for the answer to this call, or on its connection. */
        NO_ROOM,
        /** This side's event loop was held up as the call's time went by, and nobody knows how the call has ended. */
        UNHEARD
    }

    private final Code code;
    private final Executed executed;

    /**
     * Null for all that a server says and a handler throws: only {@link #unsent}, {@link #noRoom} and {@link #unheard}
     * set it.
     */
    private final transient @Nullable Own own;

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
        return new RPCXException(code, message, Executed.NOT_EXECUTED);
    }

    RPCXException(Code code, @Nullable String message, Executed executed) {
        this(code, message, executed, null);
    }

    RPCXException(Code code, @Nullable String message, Executed executed, @Nullable Throwable cause) {
        this(code, message, executed, cause, null);
    }

    private RPCXException(
            Code code, @Nullable String message, Executed executed, @Nullable Throwable cause, @Nullable Own own) {
        // a text that is missing would be sent as the word null
        super(message == null && code != null ? code.name() : message, cause, false, false);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Objects.requireNonNull(executed);
        this.own = own;
    }

    /**
     * A call that one connection does not take, and another one may. Never for what the server has said of the call.
     */
    static RPCXException unsent(Own why, Code code, String message) {
        return new RPCXException(code, message, Executed.NOT_EXECUTED, null, Objects.requireNonNull(why));
    }

    /** Why the call failed. */
    public Code code() {
        return code;
    }

    /** Whether the handler ran: what to know before the call is sent again. */
    public Executed executed() {
        return executed;
    }

    /** The server has answered in vain. That says nothing against it, and to ask it once more would not help. */
    static RPCXException noRoom(String message) {
        return noRoom(message, Executed.EXECUTED);
    }

    /** The same where the connection ends for want of memory, whatever has become of the call there. */
    static RPCXException noRoom(String message, Executed executed) {
        return new RPCXException(Code.OVERLOADED, message, executed, null, Own.NO_ROOM);
    }

    /** A call whose time has gone by while the event loop was held up, or of whose end the loop has said nothing. */
    static RPCXException unheard(String message, Executed executed) {
        return new RPCXException(Code.DEADLINE_EXCEEDED, message, executed, null, Own.UNHEARD);
    }

    static boolean isNoRoom(@Nullable Throwable thrown) {
        return thrown instanceof RPCXException known && known.own == Own.NO_ROOM;
    }

    /** Null where the server has said how the call ended, or this side knows nothing of it. */
    @Nullable
    Own own() {
        return own;
    }

    /** The same end of a call of which an earlier attempt may have been executed. */
    RPCXException afterAnother() {
        return executed == Executed.NOT_EXECUTED
                ? new RPCXException(code, String.valueOf(getMessage()), Executed.MAYBE, this)
                : this;
    }

    /** The same, of a call whose handler has begun, whatever the server says of that. */
    RPCXException ofHandler() {
        return executed == Executed.NOT_EXECUTED
                ? new RPCXException(code, String.valueOf(getMessage()), Executed.EXECUTED, this)
                : this;
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
    public String toString() {
        return "RPCXException: " + code + " (" + executed + "): " + getMessage();
    }
}
