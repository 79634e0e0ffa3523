package dev.parley.transport.grpc;

import dev.parley.spi.CallException;
import io.grpc.Status;

/** The two vocabularies of errors, each as the other says it. Source: grpc.io/docs/guides/status-codes. */
final class Errors {
    /**
     * Characters of a description. It travels in the trailers, which the peer refuses above 8 KiB, percent-encoded: up to three bytes in
     * UTF-8 a character, each written as three.
     */
    private static final int MAX_DESCRIPTION = 800;

    private Errors() {}

    static Status toStatus(Throwable thrown) {
        CallException e = CallException.of(thrown);
        Status status = switch (e.code()) {
            case DEADLINE_EXCEEDED -> Status.DEADLINE_EXCEEDED;
            case UNAVAILABLE -> Status.UNAVAILABLE;
            case REMOTE_ERROR -> Status.UNKNOWN;
            case NOT_FOUND -> Status.NOT_FOUND;
            case INVALID -> Status.INVALID_ARGUMENT;
            case UNAUTHENTICATED -> Status.UNAUTHENTICATED;
            case TOO_LARGE -> Status.RESOURCE_EXHAUSTED;
            case PROTOCOL -> Status.INTERNAL;
        };
        String message = String.valueOf(e.getMessage());
        return status.withDescription(
                message.length() > MAX_DESCRIPTION ? message.substring(0, MAX_DESCRIPTION) : message);
    }

    static CallException toCall(Throwable thrown) {
        Status status = Status.fromThrowable(thrown);
        CallException.Code code = switch (status.getCode()) {
            case DEADLINE_EXCEEDED -> CallException.Code.DEADLINE_EXCEEDED;
            case UNAVAILABLE, CANCELLED, ABORTED -> CallException.Code.UNAVAILABLE;
            case NOT_FOUND, UNIMPLEMENTED -> CallException.Code.NOT_FOUND;
            case INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE, ALREADY_EXISTS -> CallException.Code.INVALID;
            case UNAUTHENTICATED, PERMISSION_DENIED -> CallException.Code.UNAUTHENTICATED;
            case RESOURCE_EXHAUSTED -> CallException.Code.TOO_LARGE;
            case INTERNAL, DATA_LOSS -> CallException.Code.PROTOCOL;
            case UNKNOWN, OK -> CallException.Code.REMOTE_ERROR;
        };
        String description = status.getDescription();
        return new CallException(code, description == null ? status.getCode().name() : description, thrown);
    }
}
