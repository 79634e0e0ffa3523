package dev.rpcx.codec;

/**
 * Thrown if a value cannot be written or if bytes cannot be read. It has no stack trace, because refusing hostile bytes
 * must be cheap. Its message may be sent to a peer, so the message names fields and types as the schema does, and names
 * no Java class. The cause, if there is one, is what the type's own code has thrown, or an exception that names the
 * Java classes.
 */
public final class CodecException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Max number of characters that are taken from the message of another exception, which may contain the whole input.
     */
    private static final int MAX_MESSAGE_CHARS = 1_000;

    /** Kind of fault. */
    public enum Code {
        /** A value is null where Protobuf has no null. */
        NULL_VALUE,
        /** The bytes are not a message of the expected type. */
        MALFORMED,
        /**
         * The message exceeds a limit of {@link Limits} other than the depth, or it would cost too much to hash and to
         * compare the keys of its sets and maps.
         */
        TOO_LARGE,
        /**
         * The objects of the message would take more memory than {@link Memory} grants now. At another time the same
         * message may be read.
         */
        NO_MEMORY,
        /** More messages are inside each other than {@link Limits#depth()} allows. */
        TOO_DEEP,
        /**
         * A number of an enum or a case of a sealed type is not known here, or no case is set, and no constant or
         * case is declared as the unknown one.
         */
        UNKNOWN_VALUE,
        /**
         * The type's own code refused the value, and the cause says why. Or the object is of a subclass, which has more
         * than would be sent, or of a class that is not a case of the sealed type. Or a string has half a surrogate
         * pair.
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
     * Returns the exception for what the code of a type has thrown: its constructor, an accessor or {@code hashCode}.
     * An {@code Error} is wrapped as well, so that callers have one exception to catch: a stack or heap that was too
     * small for this value need not be too small for the next one. Other errors of the virtual machine are thrown as
     * they are.
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
     * Returns the message of an exception, as far as a peer may see it. The message is cut off after
     * {@code MAX_MESSAGE_CHARS} characters.
     */
    private static String messageOf(Throwable thrown) {
        String message = null;
        try {
            message = Words.of(thrown);
        } catch (Throwable speechless) {
            // an exception that cannot give its message counts as one that has none
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
