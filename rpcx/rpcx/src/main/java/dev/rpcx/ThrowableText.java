package dev.rpcx;

import dev.rpcx.codec.CodecException;

/** What is told of an exception that is not ours, and what it says of memory. Throws nothing. */
final class ThrowableText {
    /** Characters that a call's error takes from what has failed elsewhere: a connection, a registry, a record. */
    static final int MAX_WHY = 500;

    private ThrowableText() {}

    /** What a user's exception says of itself, or its class where its own methods fail. */
    static String words(Throwable e) {
        try {
            return String.valueOf(e instanceof CodecException ? e.getMessage() : e);
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /** What a peer is told of a value that could not be read or written here: no names of classes. */
    static String wireWords(Throwable e) {
        return e instanceof CodecException ? message(e) : "it has failed over it";
    }

    /** An exception's message, or its class where it has none or its own methods fail. */
    static String message(Throwable e) {
        try {
            String message = e.getMessage();
            return message == null ? e.getClass().getName() : message;
        } catch (Throwable again) {
            return e.getClass().getName();
        }
    }

    /** Says whether what was not read now may be read another time. */
    static boolean isOfMemory(Throwable e) {
        return e instanceof OutOfMemoryError
                || e instanceof CodecException refused
                        && (refused.code() == CodecException.Code.NO_MEMORY
                                || refused.getCause() instanceof OutOfMemoryError);
    }
}
