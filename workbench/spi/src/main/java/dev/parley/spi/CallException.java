package dev.parley.spi;

import java.time.Duration;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A call that brought no reply. Every technology's own error (HTTP status, gRPC status, GraphQL error, RPCX code) is
 * carried over to one of these codes, so that the same fault means the same in all of them. It has no stack trace,
 * since it is thrown on the hot path under overload.
 */
public final class CallException extends RuntimeException {
    /** What went wrong. */
    public enum Code {
        /** No reply within the time given. */
        DEADLINE_EXCEEDED,
        /** The peer cannot be reached, or the connection ended with the call in flight. */
        UNAVAILABLE,
        /** The handler threw: the message is the handler's. */
        REMOTE_ERROR,
        /** The operation or the thing asked for does not exist. */
        NOT_FOUND,
        /** The request breaks a rule of the work. */
        INVALID,
        /** Token missing, wrong or expired. */
        UNAUTHENTICATED,
        /** Request or reply above the technology's limit. */
        TOO_LARGE,
        /** The peer spoke something else than the technology's protocol. */
        PROTOCOL
    }

    private final Code code;

    public CallException(Code code, String message) {
        this(code, message, null);
    }

    public CallException(Code code, String message, @Nullable Throwable cause) {
        super(message, cause, false, false);
        this.code = code;
    }

    public Code code() {
        return code;
    }

    /** The exception itself if it is one of ours, or else a {@link Code#REMOTE_ERROR} with its message. */
    public static CallException of(Throwable thrown) {
        Throwable t = thrown;
        while (t instanceof CompletionException && t.getCause() != null) {
            t = t.getCause();
        }
        return t instanceof CallException call
                ? call
                : new CallException(Code.REMOTE_ERROR, String.valueOf(t.getMessage()), t);
    }

    /**
     * The end of a future that brought no reply of the peer: the exception itself if it is one of ours, or else
     * {@link Code#UNAVAILABLE}.
     */
    public static CallException unreached(Location peer, Throwable thrown) {
        Throwable t = thrown;
        while ((t instanceof CompletionException || t instanceof ExecutionException) && t.getCause() != null) {
            t = t.getCause();
        }
        return t instanceof CallException call
                ? call
                : new CallException(Code.UNAVAILABLE, peer + " cannot be reached: " + t, t);
    }

    /** A peer's reply did not come in time. */
    public static CallException late(Location peer, Duration timeout) {
        return new CallException(Code.DEADLINE_EXCEEDED, peer + " did not answer within " + timeout.toMillis() + " ms");
    }

    @Override
    public String toString() {
        return code + ": " + getMessage();
    }
}
