package dev.parley.transport.grpcspring;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import io.grpc.Status;

/** Errors of calls as gRPC statuses and back. */
final class Errors {
    /** A description travels in a trailer, and all trailers together may have 8 KiB. Source: grpc-java, GrpcUtil. */
    private static final int MAX_CHARS = 1_500;

    private Errors() {}

    static Status status(Throwable thrown) {
        CallException fault = CallException.of(thrown);
        Status status = switch (fault.code()) {
            case DEADLINE_EXCEEDED -> Status.DEADLINE_EXCEEDED;
            case UNAVAILABLE -> Status.UNAVAILABLE;
            case REMOTE_ERROR -> Status.UNKNOWN;
            case NOT_FOUND -> Status.NOT_FOUND;
            case INVALID -> Status.INVALID_ARGUMENT;
            case UNAUTHENTICATED -> Status.UNAUTHENTICATED;
            case TOO_LARGE -> Status.RESOURCE_EXHAUSTED;
            case PROTOCOL -> Status.INTERNAL;
        };
        String message = String.valueOf(fault.getMessage());
        return status.withDescription(message.length() > MAX_CHARS ? message.substring(0, MAX_CHARS) + "…" : message);
    }

    static CallException read(Status status, Throwable cause) {
        Code code = switch (status.getCode()) {
            case DEADLINE_EXCEEDED -> Code.DEADLINE_EXCEEDED;
            case UNAVAILABLE, CANCELLED -> Code.UNAVAILABLE;
            case NOT_FOUND, UNIMPLEMENTED -> Code.NOT_FOUND;
            case INVALID_ARGUMENT -> Code.INVALID;
            case UNAUTHENTICATED, PERMISSION_DENIED -> Code.UNAUTHENTICATED;
            case RESOURCE_EXHAUSTED -> Code.TOO_LARGE;
            case INTERNAL, DATA_LOSS -> Code.PROTOCOL;
            default -> Code.REMOTE_ERROR;
        };
        String description = status.getDescription();
        return new CallException(code, description == null ? status.getCode().name() : description, cause);
    }
}
