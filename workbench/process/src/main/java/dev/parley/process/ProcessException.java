package dev.parley.process;

/** A process that could not be started, or ended by itself: says which, how, and where its log is. */
public final class ProcessException extends RuntimeException {
    public ProcessException(String message) {
        super(message);
    }

    public ProcessException(String message, Throwable cause) {
        super(message, cause);
    }
}
