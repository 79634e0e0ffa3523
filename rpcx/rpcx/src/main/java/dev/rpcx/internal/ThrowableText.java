package dev.rpcx.internal;

import dev.rpcx.codec.CodecException;

/**
 * Gets texts from exceptions of foreign code, and finds out whether they stand for a lack of memory. The methods of
 * this class throw nothing, even where the methods of such an exception fail.
 */
public final class ThrowableText {
    /**
     * Most characters that a call's error takes over from the text of a failure elsewhere: of a connection, a registry
     * or a record.
     */
    public static final int MAX_WHY = 500;

    private ThrowableText() {}

    /** Text for an exception of user code, or the name of its class where its own methods fail. */
    public static String words(Throwable e) {
        try {
            return String.valueOf(e instanceof CodecException ? e.getMessage() : e);
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /** Text that tells a peer why a value could not be read or written here. The text names no classes. */
    public static String wireWords(Throwable e) {
        return e instanceof CodecException ? message(e) : "it has failed over it";
    }

    /** An exception's message, or the name of its class where it has no message or its own methods fail. */
    public static String message(Throwable e) {
        try {
            String message = e.getMessage();
            return message == null ? e.getClass().getName() : message;
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /** Whether memory was short, so that a value that could not be read now may be read another time. */
    public static boolean isOfMemory(Throwable e) {
        return e instanceof OutOfMemoryError
                || e instanceof CodecException refused
                        && (refused.code() == CodecException.Code.NO_MEMORY
                                || refused.getCause() instanceof OutOfMemoryError);
    }
}
