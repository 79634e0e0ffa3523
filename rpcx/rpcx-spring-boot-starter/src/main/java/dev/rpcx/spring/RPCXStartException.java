package dev.rpcx.spring;

import java.util.function.Supplier;
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

    /**
     * Returns what {@code builder} makes.
     *
     * @param builder makes the builder of a client or of a server, which checks the version of Netty
     * @throws RPCXStartException if Netty is older than RPCX needs, as that of Spring Boot 3.5 is
     */
    static <B> B checkingNetty(Supplier<B> builder) {
        try {
            return builder.get();
        } catch (IllegalStateException e) {
            throw new RPCXStartException(
                    "RPCX cannot use the Netty of this application: " + e.getMessage(),
                    "Give the property netty.version the value that is named here, if spring-boot-starter-parent is the"
                            + " parent of the project or Gradle has Spring's dependency management. Otherwise import"
                            + " io.netty:netty-bom of that version before the BOM of Spring Boot.",
                    e);
        }
    }

    String action() {
        return action;
    }
}
