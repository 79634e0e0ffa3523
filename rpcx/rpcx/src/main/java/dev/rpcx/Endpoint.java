package dev.rpcx;

import dev.rpcx.internal.Given;

/**
 * The address and the weight of one instance of a service.
 *
 * @param host name or IP address: 1 to 255 characters, without spaces and control characters
 * @param port 1 to 65535
 * @param weight the instance's share of the calls, relative to the other instances: 1 to 1000. Only
 *     {@link Choice#WEIGHTED_ROUND_ROBIN} and {@link Choice#CONSISTENT_HASH} use the weight.
 */
public record Endpoint(String host, int port, int weight) {
    /** Largest weight that an endpoint can have. */
    public static final int MAX_WEIGHT = 1000;

    /** Maximum number of characters of a host. A DNS message allows the same number of bytes for a name. */
    public static final int MAX_HOST_LENGTH = 255;

    /**
     * Creates an endpoint, after checking the host, the port and the weight.
     *
     * @throws IllegalArgumentException if the host, the port or the weight is not allowed
     */
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

    /** Creates an endpoint with weight 1. */
    public Endpoint(String host, int port) {
        this(host, port, 1);
    }

    /**
     * Returns whether {@code text} is allowed as the host of an endpoint. Use this method for text from a registry,
     * which can contain anything.
     */
    public static boolean isHost(String text) {
        return !Given.notNull(text, "text", "a name or an address").isEmpty()
                && text.length() <= MAX_HOST_LENGTH
                && text.chars().noneMatch(c -> Character.isISOControl(c) || Character.isWhitespace(c));
    }
}
