package dev.parley.backend;

/** A backend that cannot be had on this machine: one line that says why and how to get it. */
public final class BackendUnavailable extends RuntimeException {
    public BackendUnavailable(String message) {
        super(message);
    }

    public BackendUnavailable(String message, Throwable cause) {
        super(message, cause);
    }
}
