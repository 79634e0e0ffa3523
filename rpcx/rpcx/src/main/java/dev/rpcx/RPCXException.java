package dev.rpcx;

import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.Given;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if a call has failed. The exception says why the call has failed, and whether the handler was started. A
 * handler can throw this exception to choose the code, the message and the details that its caller gets.
 *
 * <p>An exception that a blocking call throws has the stack trace of its caller. Any other exception of this class has
 * no stack trace, since the stack of a connection's thread would say nothing about the call. The {@code get} and
 * {@code join} of a future put an exception of the JDK around it, with the stack trace of the thread that waits.
 *
 * <p>Applications should not extend this class: only the code, the message and the details of a handler's exception
 * reach the caller. An exception with {@link RPCXError} reaches the caller as itself.
 */
public class RPCXException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Maximum number of nested {@link CompletionException}s that {@link #cause} unwraps. */
    private static final int MAX_CAUSES = 32;

    /** Maximum number of details of one error. */
    public static final int MAX_DETAILS = 16;

    /**
     * Maximum number of bytes of all details of one error, their names included. An error has to fit into one frame of
     * the wire, together with its text.
     */
    public static final int MAX_DETAIL_BYTES = 8 * 1024;

    /** Maximum number of bytes of the name of a detail. */
    private static final int MAX_NAME_BYTES = 255;

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
         * result could not be sent. The server logs such an exception with its stack trace. An exception with
         * {@link RPCXError} that the client's method declares arrives as itself, and not with this code. The caller
         * gets the message of the exception, but a fixed text in these cases:
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
         * {@link RPCXException} that was made with EXECUTED or MAYBE, for example by a call that the interceptor has
         * made instead.
         */
        EXECUTED,
        /**
         * It is not known whether the handler was started, for example because the request was sent and no answer came.
         */
        MAYBE
    }

    /**
     * A value that an error carries beside its code and its text.
     *
     * @param name name of the detail, 1 to 255 bytes of UTF-8: the simple name of the value's class or, for an
     *     exception that its method declares, the name that {@link RPCXError} gives it
     * @param message value of the detail, as a Protobuf message. The array belongs to the detail, so nobody changes it.
     * @param isDeclared whether the detail is the exception that the handler has thrown, and that its method declares.
     *     A client whose method declares the exception too throws the exception itself.
     */
    public record Detail(String name, byte[] message, boolean isDeclared) implements Serializable {
        public Detail {
            int bytes = ByteBufUtil.utf8Bytes(Given.notNull(name, "name", "that of a detail"));
            if (bytes < 1 || bytes > MAX_NAME_BYTES) {
                throw new IllegalArgumentException(
                        "name: " + bytes + " bytes (expected: 1 to " + MAX_NAME_BYTES + " bytes)");
            }
            Given.notNull(message, "message", "a Protobuf message");
        }

        /** Returns a text without the message, which may have secrets. */
        @Override
        public String toString() {
            return name + " of " + message.length + " bytes";
        }
    }

    private final Code code;
    private final Executed executed;

    /** Whether the exception leaves {@link #executed} to RPCX: see {@link #isExecutedOpen}. */
    private final boolean isExecutedOpen;

    private final List<Detail> details;

    /** Metadata that have come with the error; null if there are none. They are not serialized. */
    private final transient @Nullable Metadata metadata;

    /**
     * Creates an exception with which a handler or an interceptor ends a call. The caller gets this code and this
     * message. RPCX itself says whether the handler was started, see {@link #isExecutedOpen}.
     *
     * @param message text that the caller gets, or null for the name of the code
     */
    public RPCXException(Code code, @Nullable String message) {
        this(code, message, Executed.EXECUTED, true, null, List.of(), null);
    }

    /**
     * Returns an exception with which an interceptor refuses a call instead of going on with it. The caller gets this
     * code and this message, with {@link Executed#NOT_EXECUTED}. If an interceptor of a server throws the exception
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
        this(code, message, executed, false, cause, List.of(), null);
    }

    private RPCXException(
            Code code,
            @Nullable String message,
            Executed executed,
            boolean isExecutedOpen,
            @Nullable Throwable cause,
            List<Detail> details,
            @Nullable Metadata metadata) {
        // a null message would be sent as the text "null"
        super(message == null && code != null ? code.name() : message, cause, false, true);
        this.code = Given.notNull(code, "code", "one of RPCXException.Code");
        this.executed = Given.notNull(executed, "executed", "one of RPCXException.Executed");
        this.isExecutedOpen = isExecutedOpen;
        this.details = details;
        this.metadata = metadata;
    }

    /**
     * Records the stack of the calling thread in this exception. The constructors do not record the stack, since RPCX
     * makes most of these exceptions on event loops, and makes many of them when a server is overloaded.
     */
    @Override
    public final synchronized Throwable fillInStackTrace() {
        // The constructor of Throwable calls this method before the code is set.
        return code == null ? this : super.fillInStackTrace();
    }

    /**
     * Returns a copy of this exception with one more detail, for example
     * {@code new RPCXException(Code.INVALID, "no such age").withDetail(new BadField("age"))}. The caller reads the
     * detail by {@link #detail}, with a class of the same simple name. Callers of an earlier version of RPCX get the
     * error without details.
     *
     * <p>No lock file has the types of details, so give their components numbers by {@link Field}. Otherwise the
     * numbers depend on the order of declaration.
     *
     * @param detail a record, or an object of any other class that can be a parameter
     * @throws SchemaException if the class cannot be mapped to Protobuf
     * @throws CodecException if the value cannot be written
     * @throws IllegalArgumentException if the error has more than {@link #MAX_DETAILS} details then, or if they have
     *     more than {@link #MAX_DETAIL_BYTES}
     */
    public final RPCXException withDetail(Object detail) {
        Class<?> type = Given.notNull(detail, "detail", "a record, or an object of another class with components")
                .getClass();
        ByteBuf message = Unpooled.buffer();
        Codecs.standard(type).value(type).write(detail, message);
        List<Detail> all = new ArrayList<>(details);
        all.add(new Detail(type.getSimpleName(), ByteBufUtil.getBytes(message), false));
        return withDetails(all);
    }

    /**
     * Returns a copy of this exception with these details in place of its own.
     *
     * @throws IllegalArgumentException if there are more than {@link #MAX_DETAILS} details, or if they have more than
     *     {@link #MAX_DETAIL_BYTES}
     */
    public final RPCXException withDetails(List<Detail> details) {
        List<Detail> given = Given.noneNull(details, "details", "a Detail");
        if (given.isEmpty() && this.details.isEmpty()) {
            return this;
        }
        if (given.size() > MAX_DETAILS) {
            throw new IllegalArgumentException(
                    "details: " + given.size() + " of them (expected: at most " + MAX_DETAILS + ")");
        }
        long bytes = 0;
        for (Detail each : given) {
            bytes += ByteBufUtil.utf8Bytes(each.name) + each.message.length;
        }
        if (bytes > MAX_DETAIL_BYTES) {
            throw new IllegalArgumentException("details: " + bytes + " bytes (expected: at most " + MAX_DETAIL_BYTES
                    + " for all of them, with their names)");
        }
        return new RPCXException(code, getMessage(), executed, isExecutedOpen, getCause(), given, metadata);
    }

    /**
     * Returns a copy of this exception with this metadata. RPCX sets the metadata of an error that a server sends or a
     * client receives. A handler uses {@link CallContext#reply} instead.
     */
    public final RPCXException withMetadata(Metadata metadata) {
        return Given.notNull(metadata, "metadata", "that of a reply").isEmpty() && this.metadata == null
                ? this
                : new RPCXException(code, getMessage(), executed, isExecutedOpen, getCause(), details, metadata);
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
     * Returns whether this exception leaves it to RPCX to say whether the handler was started. This is so for an
     * exception that {@link #RPCXException(Code, String)} has made. If an interceptor of a server throws such an
     * exception before the handler has started, or one of a client before the call is sent, the caller gets
     * {@link Executed#NOT_EXECUTED}.
     */
    public final boolean isExecutedOpen() {
        return isExecutedOpen;
    }

    /**
     * Returns the metadata that the server has sent with this error, by {@link CallContext#reply}; empty if there are
     * none.
     */
    public final Metadata metadata() {
        return metadata == null ? Metadata.EMPTY : metadata;
    }

    /** Returns the details of this error. The list is immutable, and empty if there are none. */
    public final List<Detail> details() {
        return details;
    }

    /**
     * Returns the first detail whose name is the simple name of {@code type}, as an object of {@code type}. Returns
     * empty if there is no such detail. The class is never chosen by what a peer has sent.
     *
     * @throws SchemaException if the class cannot be mapped to Protobuf
     * @throws CodecException if the detail cannot be read as an object of this class
     */
    public final <T> Optional<T> detail(Class<T> type) {
        String name = Given.notNull(type, "type", "the class of a detail").getSimpleName();
        for (Detail each : details) {
            if (each.name.equals(name)) {
                ByteBuf message = Unpooled.wrappedBuffer(each.message);
                return Optional.of(type.cast(Codecs.standard(type).value(type).read(message)));
            }
        }
        return Optional.empty();
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
