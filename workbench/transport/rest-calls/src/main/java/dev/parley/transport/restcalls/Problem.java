package dev.parley.transport.restcalls;

import dev.parley.spi.CallException;

/**
 * An error as JSON. Source: RFC 9457, section 3.1.
 *
 * @param type {@code about:blank}: the status says it all
 * @param detail the handler's message
 * @param code extension member: the name of a {@link CallException.Code}
 */
record Problem(String type, String title, int status, String detail, String code) {
    static final String MEDIA_TYPE = "application/problem+json";

    static Problem of(CallException e) {
        int status = status(e.code());
        return new Problem(
                "about:blank",
                title(e.code()),
                status,
                String.valueOf(e.getMessage()),
                e.code().name());
    }

    /** A request that could not be read: the caller's fault, where the same code from a neighbour is not. */
    static Problem ofRequest(CallException e) {
        return new Problem(
                "about:blank",
                "Bad Request",
                400,
                String.valueOf(e.getMessage()),
                e.code().name());
    }

    /** What a server's error means that says no more than its status, such as one from a proxy or of the HTTP server itself. */
    static CallException.Code code(int status) {
        return switch (status) {
            case 400, 422 -> CallException.Code.INVALID;
            case 401, 403 -> CallException.Code.UNAUTHENTICATED;
            case 404, 405 -> CallException.Code.NOT_FOUND;
            case 408, 504 -> CallException.Code.DEADLINE_EXCEEDED;
            case 413, 414, 431 -> CallException.Code.TOO_LARGE;
            case 429, 503 -> CallException.Code.UNAVAILABLE;
            case 500 -> CallException.Code.REMOTE_ERROR;
            default -> CallException.Code.PROTOCOL;
        };
    }

    CallException asException() {
        for (CallException.Code known : CallException.Code.values()) {
            if (known.name().equals(code)) {
                return new CallException(known, detail);
            }
        }
        return new CallException(code(status), detail);
    }

    private static int status(CallException.Code code) {
        return switch (code) {
            case INVALID -> 400;
            case UNAUTHENTICATED -> 401;
            case NOT_FOUND -> 404;
            case TOO_LARGE -> 413;
            case REMOTE_ERROR -> 500;
            case PROTOCOL -> 502;
            case UNAVAILABLE -> 503;
            case DEADLINE_EXCEEDED -> 504;
        };
    }

    private static String title(CallException.Code code) {
        return switch (code) {
            case INVALID -> "Bad Request";
            case UNAUTHENTICATED -> "Unauthorized";
            case NOT_FOUND -> "Not Found";
            case TOO_LARGE -> "Content Too Large";
            case REMOTE_ERROR -> "Internal Server Error";
            case PROTOCOL -> "Bad Gateway";
            case UNAVAILABLE -> "Service Unavailable";
            case DEADLINE_EXCEEDED -> "Gateway Timeout";
        };
    }
}
