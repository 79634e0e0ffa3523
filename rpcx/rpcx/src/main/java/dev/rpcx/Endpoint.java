package dev.rpcx;

import dev.rpcx.internal.Given;

/**
 * One instance of a service.
 *
 * @param host name or IP address: 1 to 255 characters, without spaces and control characters
 * @param port 1 to 65535
 * @param weight 1 to 1000: the instance's share of the calls, relative to the other instances. Used only by
 *     {@link Choice#WEIGHTED_ROUND_ROBIN} and {@link Choice#CONSISTENT_HASH}.
 */
public record Endpoint(String host, int port, int weight) {
    /** Maximum weight. */
    public static final int MAX_WEIGHT = 1000;

    /** Maximum number of characters of a host: the length of the longest DNS name. */
    public static final int MAX_HOST_LENGTH = 255;

    /**
     * Checks the host, and the ranges of port and weight.
     *
     * @throws IllegalArgumentException if one of them is not allowed
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
     * Returns whether {@code text} can be the host of an endpoint. It is meant for text from a registry, which may
     * contain anything.
     */
    public static boolean isHost(String text) {
        return !Given.notNull(text, "text", "a name or an address").isEmpty()
                && text.length() <= MAX_HOST_LENGTH
                && text.chars().noneMatch(c -> Character.isISOControl(c) || Character.isWhitespace(c));
    }
}
