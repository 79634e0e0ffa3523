package dev.parley.limits;

import org.jspecify.annotations.Nullable;

/** A limit that could not be set up, in one line: which, why, and what would be needed. */
public final class LimitsException extends RuntimeException {
    LimitsException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
