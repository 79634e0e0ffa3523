package dev.rpcx.spring;

import org.jspecify.annotations.Nullable;

/** The application cannot start as it is configured. {@link RPCXStartFailureAnalyzer} tells it without a stack trace. */
final class RPCXStartException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String action;

    /** @param action what to change */
    RPCXStartException(String text, String action, @Nullable Throwable cause) {
        super(text, cause);
        this.action = action;
    }

    String action() {
        return action;
    }
}
