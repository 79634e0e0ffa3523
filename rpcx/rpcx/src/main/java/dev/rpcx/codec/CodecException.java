package dev.rpcx.codec;

/**
 * Thrown if a value cannot be written or if bytes cannot be read. The exception has no stack trace, because refusing
 * hostile bytes must be cheap. Its text may be sent to a peer, so the text names fields and types as the schema does,
 * and names no Java class. Its cause, if it has one, is what the type's own code has thrown, or an exception whose text
 * names the Java classes.
 */
public final class CodecException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Max number of characters that are copied from the text of another exception, since that text may contain the
     * complete input.
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
         * The bytes contain a number that the enum does not have in this process, a case that the sealed type does not
         * have in this process, or no case at all; and the enum or sealed type declares no constant or case that stands
         * for unknown ones.
         */
        UNKNOWN_VALUE,
        /**
         * The value is refused for one of these reasons: the type's own code has thrown an exception, which is the
         * cause; the object is of a subclass, which has more data than would be sent; the object is of a class that is
         * not a case of the sealed type; or a string has half a surrogate pair.
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
     * Wraps what the code of a type has thrown, for example its constructor, an accessor or {@code hashCode}. An
     * {@code Error} is wrapped as well, so that callers have only one exception to catch. This includes a stack
     * overflow and a lack of memory, because the stack or heap that was too small for this value may be large enough
     * for the next one. Other errors of the virtual machine are thrown unchanged.
     */
    static CodecException ofForeign(String what, Throwable thrown) {
        if (thrown instanceof VirtualMachineError error
                && !(thrown instanceof StackOverflowError)
                && !(thrown instanceof OutOfMemoryError)) {
            throw error;
        }
        return new CodecException(Code.REFUSED, what + messageOf(thrown), thrown);
    }

    /**
     * Returns the part of an exception's text that a peer may see. The text is cut off after {@code MAX_MESSAGE_CHARS}
     * characters.
     */
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
