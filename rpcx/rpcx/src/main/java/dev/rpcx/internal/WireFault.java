package dev.rpcx.internal;

/**
 * Thrown if the peer has broken a rule of the wire protocol; the connection is closed as a result. The exception has no
 * stack trace, so that invalid bytes from a hostile peer cost little.
 */
public final class WireFault extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public WireFault(String message) {
        super(message, null, false, false);
    }
}
