package dev.rpcx.internal;

/**
 * Thrown where the peer has broken a rule of the wire, which ends the connection. It has no stack trace, since hostile
 * bytes must be cheap to refuse.
 */
public final class WireFault extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public WireFault(String message) {
        super(message, null, false, false);
    }
}
