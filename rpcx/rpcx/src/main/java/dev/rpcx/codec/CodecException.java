package dev.rpcx.codec;

/**
 * Thrown if a value cannot be written or if bytes cannot be read. The exception has no stack trace, because refusing
 * hostile bytes must be cheap. The exception's message can be sent to a peer, and names fields and types as the schema
 * does. RPCX names the classes of values only in the exception's cause. But the message can contain the text of another
 * exception, for example from a constructor, and that text can name Java classes.
 */
public final class CodecException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * The maximum number of characters that are copied from the message of another exception. Such a message can
     * contain the complete input.
     */
    private static final int MAX_MESSAGE_CHARS = 1_000;

    /** The kinds of fault. */
    public enum Code {
        /** A value is null where Protobuf has no null, for example an element of a list. */
        NULL_VALUE,
        /** The bytes are not a message of the expected type. */
        MALFORMED,
        /**
         * The message exceeds one of the {@link Limits} other than the depth. This code also means that hashing and
         * comparing the elements of the message's sets and the keys of its maps would take too much time.
         */
        TOO_LARGE,
        /**
         * {@link Memory} does not grant the memory that the objects of the message need. A later try to read the
         * same message can succeed.
         */
        NO_MEMORY,
        /** More messages are nested in each other than {@link Limits#depth()} allows. */
        TOO_DEEP,
        /**
         * The bytes contain the number of an enum constant that this process does not know. For a sealed type, this
         * code means that the bytes contain only a case that this process does not know, or no case at all. A type that
         * declares a constant or case for unknown values is read without this fault.
         */
        UNKNOWN_VALUE,
        /**
         * The value is refused by the type's own code or by the codec. These are the usual reasons:
         *
         * <ul>
         *   <li>The type's own code throws an exception, which becomes the cause of the {@code CodecException}.
         *   <li>The codec does not accept the class of an object.
         *   <li>A string has half a surrogate pair.
         * </ul>
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
     * Wraps an exception or error that is no {@code CodecException}, usually from the code of a type, for example from
     * a constructor or an accessor. A stack overflow and a lack of memory are wrapped too, because the stack or heap
     * can be large enough for the next value. Other errors of the virtual machine are thrown unchanged.
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
     * Returns the part of an exception's message that can be sent to a peer. A message of more than
     * {@code MAX_MESSAGE_CHARS} characters is cut off.
     */
    private static String messageOf(Throwable thrown) {
        String message = null;
        try {
            message = PeerText.of(thrown);
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
