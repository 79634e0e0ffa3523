package dev.rpcx.internal;

/**
 * Thrown if the peer has broken a rule of the wire; the connection then ends. Has no stack trace, so that hostile bytes
 * cost little.
 */
public final class WireFault extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public WireFault(String message) {
        super(message, null, false, false);
    }
}
