package dev.parley.model;

import java.util.Collection;

/**
 * Input that a person wrote and that cannot be used. The message names the place, the value and what was expected; the
 * command line prints it as it is, on one line, and ends with exit code 1.
 */
public final class BadInput extends IllegalArgumentException {
    public BadInput(String place, Object value, String expected) {
        super(place + ": " + value + " (expected: " + expected + ")");
    }

    private BadInput(String message) {
        super(message);
    }

    /** A name that is not known: {@code technology: grcp (did you mean grpc? expected: one of rest, grpc)}. */
    public static BadInput oneOf(String place, String given, Collection<String> known) {
        return near(place, given, known, "one of " + String.join(", ", known));
    }

    /** The same where more than the known names is expected, or where they are too many to be listed. */
    public static BadInput near(String place, String given, Collection<String> known, String expected) {
        return new BadInput(place + ": " + given + " (" + Nearest.hint(given, known) + "expected: " + expected + ")");
    }
}
