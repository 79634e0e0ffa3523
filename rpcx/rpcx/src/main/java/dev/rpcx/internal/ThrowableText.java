package dev.rpcx.internal;

import dev.rpcx.codec.CodecException;

/**
 * Makes texts from exceptions of foreign code, and recognises lack of memory. Throws nothing, even if the methods of an
 * exception fail.
 */
public final class ThrowableText {
    /**
     * Max characters that the error of a call takes from the text of another failure, such as that of a connection or a
     * registry.
     */
    public static final int MAX_WHY = 500;

    private ThrowableText() {}

    /** Returns a text for an exception of user code: the name of its class if its methods fail. */
    public static String words(Throwable e) {
        try {
            return String.valueOf(e instanceof CodecException ? e.getMessage() : e);
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /**
     * Returns the text that tells a peer why this side could not read or write a value. The text names no classes of
     * this side: only a {@code CodecException} contributes its message.
     */
    public static String wireWords(Throwable e) {
        return e instanceof CodecException ? message(e) : "the server's code has failed";
    }

    /** Returns the message of an exception; the name of its class if it has no message or its methods fail. */
    public static String message(Throwable e) {
        try {
            String message = e.getMessage();
            return message == null ? e.getClass().getName() : message;
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /**
     * Returns whether an exception stands for a lack of memory. If so, a value that could not be read may be readable
     * later.
     */
    public static boolean isOfMemory(Throwable e) {
        return e instanceof OutOfMemoryError
                || e instanceof CodecException refused
                        && (refused.code() == CodecException.Code.NO_MEMORY
                                || refused.getCause() instanceof OutOfMemoryError);
    }
}
