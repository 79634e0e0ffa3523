package dev.rpcx.codec;

/**
 * A value that cannot be written, or bytes that cannot be read. Costs no stack trace: hostile bytes must be cheap to
 * refuse. Its message may be told to a peer, so it names fields and types as the schema does and no Java class; what
 * the type's own code has thrown is the cause.
 */
public final class CodecException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Characters of another's message: it may hold the whole input. */
    private static final int MAX_WORDS = 1_000;

    /** What went wrong. */
    public enum Code {
        /** Null where Protobuf has no null. */
        NULL_VALUE,
        /** Not the bytes of such a message. */
        MALFORMED,
        /** Beyond a limit of {@link Limits}. */
        TOO_LARGE,
        /** Its objects would take more than {@link Memory} grants now; another time it may be read. */
        NO_MEMORY,
        /** More messages inside each other than {@link Limits#depth()}. */
        TOO_DEEP,
        /**
         * A number of an enum, or a case of a sealed type, that is not known here, where none is declared as the
         * unknown.
         */
        UNKNOWN_VALUE,
        /** The type's own code refused the value, see the cause; or a subclass has more than would be sent. */
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
     * What the code of a type threw: its constructor, an accessor, {@code hashCode}. An {@code Error} too, so that who
     * reads has one thing to catch; a stack or heap that was too small for this value need not be so for the next.
     * Other errors of the virtual machine pass.
     */
    static CodecException ofTheirs(String what, Throwable thrown) {
        if (thrown instanceof VirtualMachineError error
                && !(thrown instanceof StackOverflowError)
                && !(thrown instanceof OutOfMemoryError)) {
            throw error;
        }
        return new CodecException(Code.REFUSED, what + words(thrown), thrown);
    }

    /** What it says of itself, as far as a peer may be told. */
    private static String words(Throwable thrown) {
        String words = null;
        try {
            words = Words.of(thrown);
        } catch (Throwable speechless) {
            // as one that says nothing
        }
        if (words == null) {
            return "an exception without a message";
        }
        return words.length() <= MAX_WORDS ? words : words.substring(0, MAX_WORDS) + "…";
    }

    /** What kind of fault it is. */
    public Code code() {
        return code;
    }
}
