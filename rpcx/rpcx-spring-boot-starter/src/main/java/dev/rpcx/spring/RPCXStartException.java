package dev.rpcx.spring;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if the application cannot start as it is configured. {@link RPCXStartFailureAnalyzer} reports it without a
 * stack trace.
 */
final class RPCXStartException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String action;

    /** @param action what has to be changed so that the application starts */
    RPCXStartException(String text, String action, @Nullable Throwable cause) {
        super(text, cause);
        this.action = action;
    }

    String action() {
        return action;
    }
}
