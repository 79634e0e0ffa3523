package dev.parley.lab;

/** Something the lab could not do: says what happened, with what, and what to do. */
public final class LabException extends RuntimeException {
    public LabException(String message) {
        super(message);
    }

    public LabException(String message, Throwable cause) {
        super(message, cause);
    }
}
