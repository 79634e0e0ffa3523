package dev.rpcx;

/** The peer broke the rules of the wire: the connection ends. Without a stack trace: hostile bytes must be cheap to refuse. */
final class WireFault extends RuntimeException {
    private static final long serialVersionUID = 1L;

    WireFault(String message) {
        super(message, null, false, false);
    }
}
