package dev.parley.model;

/**
 * Something a person wrote that cannot be used: names the place, the value and what was expected. The command line prints the message
 * as it is, on one line, and ends with exit code 1.
 */
public final class BadInput extends IllegalArgumentException {
    public BadInput(String place, Object value, String expected) {
        super(place + ": " + value + " (expected: " + expected + ")");
    }
}
