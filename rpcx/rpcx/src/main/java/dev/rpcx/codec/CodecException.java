package dev.rpcx.codec;

/**
 * Thrown if a value cannot be written or if bytes cannot be read. It has no stack trace, because refusing hostile bytes
 * must be cheap. Its text may be sent to a peer, and names fields and types as the schema does, but no Java class. Its
 * cause may name Java classes.
 */
public final class CodecException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Max number of characters that are copied from the text of another exception, which may contain the complete
     * input.
     */
    private static final int MAX_MESSAGE_CHARS = 1_000;

    /** Kind of fault. */
    public enum Code {
        /** A value is null although Protobuf has no null for it, such as an element of a list. */
        NULL_VALUE,
        /** The bytes are not a message of the expected type. */
        MALFORMED,
        /**
         * The message exceeds a limit of {@link Limits} other than the depth, or hashing and comparing the keys of its
         * sets and maps would cost too much.
         */
        TOO_LARGE,
        /**
         * The objects of the message need more memory than {@link Memory} grants at the moment. An attempt to read the
         * same message later may succeed.
         */
        NO_MEMORY,
        /** More messages are nested in each other than {@link Limits#depth()} allows. */
        TOO_DEEP,
        /**
         * The bytes contain a number of an enum or a case of a sealed type that does not exist in this process, or no
         * case at all, and the type declares no constant or case for unknown ones.
         */
        UNKNOWN_VALUE,
        /**
         * The value is refused: the type's own code has thrown an exception, which is the cause; the object is of a
         * subclass with more data than would be sent; its class is not a case of the sealed type; or a string has half
         * a surrogate pair.
         */
        REFUSED
    }

    private final Code code;

    CodecException(Code code, String message) {
        super(message, null, false, false);
        this.code = code;
    }

    CodecException(Code code, String message, Throwable cause) {
        super(message, cause, false, false);
        this.code = code;
    }

    /**
     * Wraps what the code of a type has thrown, for example its constructor, an accessor or {@code hashCode}. Errors
     * are wrapped too, even a stack overflow and a lack of memory, because the stack or heap may be large enough for
     * the next value. Other errors of the virtual machine are thrown unchanged.
     */
    static CodecException ofForeign(String what, Throwable thrown) {
        if (thrown instanceof VirtualMachineError error
                && !(thrown instanceof StackOverflowError)
                && !(thrown instanceof OutOfMemoryError)) {
            throw error;
        }
        return new CodecException(Code.REFUSED, what + messageOf(thrown), thrown);
    }

    /** Returns the part of an exception's text that a peer may see: at most {@code MAX_MESSAGE_CHARS} characters. */
    private static String messageOf(Throwable thrown) {
        String message = null;
        try {
            message = Words.of(thrown);
        } catch (Throwable speechless) {
            // an exception whose getMessage() throws is treated as an exception without a message
        }
        if (message == null) {
            return "an exception without a message";
        }
        return message.length() <= MAX_MESSAGE_CHARS ? message : message.substring(0, MAX_MESSAGE_CHARS) + "…";
    }

    /** Returns the kind of fault. */
    public Code code() {
        return code;
    }
}
