package dev.rpcx.internal;

import dev.rpcx.codec.CodecException;

/**
 * Makes texts from exceptions of foreign code, and says whether such an exception stands for a lack of memory. The
 * methods of this class throw nothing, even if the methods of the exception fail.
 */
public final class ThrowableText {
    /**
     * Maximum number of characters that the error of a call takes over from the text of another failure, which may be
     * the failure of a connection, of a registry or of a DNS record.
     */
    public static final int MAX_WHY = 500;

    private ThrowableText() {}

    /**
     * Returns a text for an exception of user code. If the methods of the exception fail, it is the name of the
     * exception's class.
     */
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

    /**
     * Returns the message of an exception. If there is no message, or if the methods of the exception fail, returns the
     * name of the exception's class.
     */
    public static String message(Throwable e) {
        try {
            String message = e.getMessage();
            return message == null ? e.getClass().getName() : message;
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /**
     * Says whether an exception stands for a lack of memory. If so, a value that could not be read now may be readable
     * at another time.
     */
    public static boolean isOfMemory(Throwable e) {
        return e instanceof OutOfMemoryError
                || e instanceof CodecException refused
                        && (refused.code() == CodecException.Code.NO_MEMORY
                                || refused.getCause() instanceof OutOfMemoryError);
    }
}
