package dev.rpcx;

/**
 * One instance of a service.
 *
 * @param host name or address, of 1 to 255 characters, without spaces and control characters
 * @param port 1 to 65535
 * @param weight 1 to 1000: its share of the calls beside the others', where the client chooses by {@link Choice#WEIGHTED_ROUND_ROBIN} or
 *     {@link Choice#CONSISTENT_HASH}
 */
public record Endpoint(String host, int port, int weight) {
    /** Largest weight. */
    public static final int MAX_WEIGHT = 1000;

    /** Most characters of a host: as many as a name in the DNS has. A registry that lies must not make errors long. */
    public static final int MAX_HOST_LENGTH = 255;

    /** Checks the ranges. */
    public Endpoint {
        if (Given.notNull(host, "host", "a name or an address").isEmpty()) {
            throw new IllegalArgumentException("host: empty (expected: a name or an address)");
        }
        if (host.length() > MAX_HOST_LENGTH) {
            throw new IllegalArgumentException(
                    "host: " + host.length() + " characters (expected: at most " + MAX_HOST_LENGTH + ")");
        }
        if (!isHost(host)) {
            throw new IllegalArgumentException("host: \"" + host.replaceAll("\\p{Cntrl}", "?")
                    + "\" (expected: without spaces and control characters)");
        }
        if (port < 1 || port > 65_535) {
            throw new IllegalArgumentException("port: " + port + " (expected: 1 to 65535)");
        }
        if (weight < 1 || weight > MAX_WEIGHT) {
            throw new IllegalArgumentException("weight: " + weight + " (expected: 1 to " + MAX_WEIGHT + ")");
        }
    }

    /** With weight 1. */
    public Endpoint(String host, int port) {
        this(host, port, 1);
    }

    /** Whether this can be the host of an endpoint: what a registry says may be anything. */
    public static boolean isHost(String text) {
        return !Given.notNull(text, "text", "a name or an address").isEmpty()
                && text.length() <= MAX_HOST_LENGTH
                && text.chars().noneMatch(c -> Character.isISOControl(c) || Character.isWhitespace(c));
    }
}
