package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.DeclaredErrors;
import dev.rpcx.internal.wire.ConnectionErrors;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Makes the errors with which a client ends its calls, on the native wire and on the classic wire. Some of them are
 * {@link LocalFailure}s. Thread-safe.
 */
final class ClientCallErrors {
    /** Text of the error CANCELLED for a call that its caller has given up. */
    static final String GIVEN_UP = "the caller gave the call up";

    private static final String NO_REPLY = "no reply in time";

    private ClientCallErrors() {}

    // ---- no reply

    /**
     * Returns the error DEADLINE_EXCEEDED, with the given {@code executed}, for a call whose time was over before a
     * reply came.
     */
    static RPCXException noReply(String peer, RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.DEADLINE_EXCEEDED, peer + ": " + NO_REPLY, executed, null);
    }

    /**
     * Returns the error DEADLINE_EXCEEDED, with the given {@code executed}, for a call whose time was over while the
     * event loop was held up. The error is a {@link LocalFailure} with the reason UNHEARD.
     *
     * @param lateNanos time in nanoseconds by which the event loop was late
     */
    static RPCXException noReplyWhileHeldUp(String peer, long lateNanos, RPCXException.Executed executed) {
        return LocalFailure.unheard(
                peer + ": " + NO_REPLY + ", while the event loop was held up for "
                        + TimeUnit.NANOSECONDS.toMillis(lateNanos) + " ms or more",
                executed);
    }

    /**
     * Returns the error DEADLINE_EXCEEDED, with MAYBE. A caller stops waiting with this error if the event loop is held
     * up and has not ended the call in time. The error is a {@link LocalFailure} with the reason UNHEARD.
     */
    static RPCXException unheard() {
        return LocalFailure.unheard(NO_REPLY + ", and the event loop is held up", RPCXException.Executed.MAYBE);
    }

    /**
     * Returns the error CANCELLED, with the given {@code executed}, for a call whose caller has stopped waiting because
     * the caller's thread was interrupted.
     */
    static RPCXException interrupted(RPCXException.Executed executed) {
        return new RPCXException(RPCXException.Code.CANCELLED, "the caller was interrupted", executed, null);
    }

    /**
     * Returns an error with the given code, text, {@code executed} and cause, for a call that this client has given up.
     */
    static RPCXException givenUp(
            RPCXException.Code code, String why, RPCXException.Executed executed, @Nullable Throwable cause) {
        return new RPCXException(code, why, executed, cause);
    }

    /** Returns an error with the given code, text and {@code executed}, for a call whose connection has ended. */
    static RPCXException connectionLost(RPCXException.Code code, String why, RPCXException.Executed executed) {
        return new RPCXException(code, why, executed, null);
    }

    /** Returns the error UNAVAILABLE, with NOT_EXECUTED, for a call that gets no connection. */
    static RPCXException unreachable(Route route, String why, @Nullable Throwable cause) {
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE, route + ": " + why, RPCXException.Executed.NOT_EXECUTED, cause);
    }

    /**
     * Returns the error that says why calls of a client would fail. It has the code of the first failure, and the texts
     * of all. Nothing has been executed.
     *
     * @param failures one failure or more
     */
    static RPCXException notReady(List<RPCXException> failures) {
        RPCXException first = failures.get(0);
        return failures.size() == 1
                ? first
                : new RPCXException(
                        first.code(),
                        failures.stream().map(RPCXException::getMessage).collect(Collectors.joining("; ")),
                        RPCXException.Executed.NOT_EXECUTED,
                        first);
    }

    // ---- what cannot be sent

    /**
     * Returns the error for a call whose arguments cannot be encoded. The code is TOO_LARGE if they are too large for
     * the codec, otherwise INVALID. The error says NOT_EXECUTED.
     */
    static RPCXException unusableArguments(CodecException e) {
        return new RPCXException(
                e.code() == CodecException.Code.TOO_LARGE ? RPCXException.Code.TOO_LARGE : RPCXException.Code.INVALID,
                e.getMessage() == null ? e.code().name() : e.getMessage(),
                RPCXException.Executed.NOT_EXECUTED,
                e);
    }

    /**
     * Returns the error TOO_LARGE, with NOT_EXECUTED, for a call whose request is too large for the server. The error
     * is a {@link LocalFailure} with the reason UNFIT.
     */
    static LocalFailure largeRequest(int bytes, int maxBytes) {
        return LocalFailure.unfit(RPCXException.Code.TOO_LARGE, ConnectionErrors.largeRequest(bytes, maxBytes));
    }

    /** Returns the error INVALID, with NOT_EXECUTED, for a call whose request could not be sent. */
    static RPCXException unsentRequest(@Nullable Throwable thrown) {
        return new RPCXException(
                RPCXException.Code.INVALID,
                "the request could not be sent: " + thrown,
                RPCXException.Executed.NOT_EXECUTED,
                thrown);
    }

    // ---- what cannot be received

    /** Returns the error INVALID, with EXECUTED, for a call whose result cannot be decoded. */
    static RPCXException unreadableResult(Throwable e) {
        return new RPCXException(
                RPCXException.Code.INVALID,
                "the result cannot be read: " + ThrowableText.words(e),
                RPCXException.Executed.EXECUTED,
                e);
    }

    /**
     * Returns the error TOO_LARGE, with the given {@code executed}, for a call of the classic wire whose reply is too
     * large.
     */
    static RPCXException largeReply(String peer, int bytes, int maxBytes, RPCXException.Executed executed) {
        return new RPCXException(
                RPCXException.Code.TOO_LARGE,
                peer + ": a reply of " + bytes + " bytes (expected: at most " + maxBytes + ")",
                executed,
                null);
    }

    /**
     * Returns the error TOO_LARGE, with EXECUTED, for a call of the native wire whose result, or an item of its stream,
     * is too large.
     *
     * @param what name of the message that is too large
     */
    static RPCXException largeMessage(String what, int maxBytes) {
        return new RPCXException(RPCXException.Code.TOO_LARGE, what + " of more than " + maxBytes + " bytes");
    }

    /**
     * Returns the error INVALID, with the given {@code executed}, for a call with a frame that could not be handled.
     */
    static RPCXException unhandledFrame(Throwable failure, RPCXException.Executed executed) {
        return new RPCXException(
                RPCXException.Code.INVALID,
                "a frame from the server cannot be handled: " + ThrowableText.words(failure),
                executed,
                failure);
    }

    /** Returns the error PROTOCOL, with EXECUTED, for a stream that the server ends with a result. */
    static RPCXException resultOfStream(int bytes) {
        return new RPCXException(
                RPCXException.Code.PROTOCOL, "a result of " + bytes + " bytes at the end of a stream (expected: none)");
    }

    // ---- what the caller sees

    /**
     * Returns the error CANCELLED, with the given {@code executed}, for a call that fails because an interceptor of
     * this client has failed.
     *
     * @param how exception or wrong result of the interceptor, in words
     */
    static RPCXException interceptorFailed(String how, RPCXException.Executed executed, @Nullable Throwable cause) {
        return new RPCXException(
                RPCXException.Code.CANCELLED, "an interceptor of this client has failed: " + how, executed, cause);
    }

    /**
     * Returns the error for a call of a method that the server does not have. The error has the code, the
     * {@code executed}, the details and the metadata of the given error. Its text names the route and the method.
     */
    static RPCXException methodNotFound(RPCXException error, Route at, Object method) {
        String text = at + ": " + method + ": " + error.getMessage();
        return copied(error, new RPCXException(error.code(), text, error.executed(), null));
    }

    /**
     * Returns the error for a call of which more is known than {@code error} says. The returned error has the code, the
     * text, the details and the metadata of {@code error}, the given {@code executed}, and {@code error} as its cause.
     */
    static RPCXException withExecuted(RPCXException error, RPCXException.Executed executed) {
        return copied(error, new RPCXException(error.code(), error.getMessage(), executed, error));
    }

    /** Returns {@code to} with the details and the metadata of {@code error}. */
    private static RPCXException copied(RPCXException error, RPCXException to) {
        return to.withDetails(error.details()).withMetadata(error.metadata());
    }

    /**
     * Returns what a blocking call throws to its caller. This is the exception of a declared class whose state
     * {@code error} has, or else a copy of {@code error} with the stack trace of the calling thread. The error itself
     * was made on an event loop in most cases, and can be the error of several calls. If there is no memory or stack
     * for a copy, the caller gets the error itself.
     */
    static Throwable atCaller(RPCXException error, DeclaredErrors declared) {
        try {
            Throwable thrown = declared.thrown(error);
            return thrown instanceof RPCXException known ? withStackTrace(known) : thrown;
        } catch (Throwable noMemory) {
            return error;
        }
    }

    private static Throwable withStackTrace(RPCXException error) {
        RPCXException own = new RPCXException(error.code(), error.getMessage(), error.executed(), error.getCause());
        return copied(error, own).fillInStackTrace();
    }
}
