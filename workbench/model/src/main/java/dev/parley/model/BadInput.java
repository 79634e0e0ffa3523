package dev.parley.model;

/**
 * Input that a person wrote and that cannot be used. The message names the place, the value and what was expected; the
 * command line prints it as it is, on one line, and ends with exit code 1.
 */
public final class BadInput extends IllegalArgumentException {
    public BadInput(String place, Object value, String expected) {
        super(place + ": " + value + " (expected: " + expected + ")");
    }
}
