package dev.rpcx.internal;

import dev.rpcx.codec.CodecException;

/**
 * Makes texts from exceptions of code outside RPCX, and recognizes exceptions that mean a lack of memory. No method of
 * this class throws an exception, even if the methods of the given exception fail.
 */
public final class ThrowableText {
    /**
     * Maximum number of characters that the error of a call quotes from the text of another failure, such as that of a
     * connection or a registry.
     */
    public static final int MAX_WHY = 500;

    private ThrowableText() {}

    /**
     * Returns a text that describes an exception, usually one of user code. The text is the message of a
     * {@link CodecException}, and the result of {@code toString} of any other exception. If a method of the exception
     * fails, the text is the name of the exception's class.
     */
    public static String words(Throwable e) {
        try {
            return String.valueOf(e instanceof CodecException ? e.getMessage() : e);
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /**
     * Returns the text that says to a client why the server could not read or write a value. Only the message of a
     * {@link CodecException} is quoted, so that the client does not learn names of classes of the server.
     */
    public static String wireWords(Throwable e) {
        return e instanceof CodecException ? message(e) : "the server's code has failed";
    }

    /**
     * Returns the message of an exception. Returns the name of the exception's class if the message is null or cannot
     * be read.
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
     * Returns whether an exception was caused by a lack of memory. If so, reading the same value again later can
     * succeed.
     */
    public static boolean isOfMemory(Throwable e) {
        return e instanceof OutOfMemoryError
                || e instanceof CodecException refused
                        && (refused.code() == CodecException.Code.NO_MEMORY
                                || refused.getCause() instanceof OutOfMemoryError);
    }
}
