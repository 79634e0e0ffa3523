package dev.rpcx.codec;

/**
 * Limits of one message, for writing and for reading.
 *
 * @param messageBytes max encoded size in bytes
 * @param depth max number of messages inside each other, counting the outermost one and each entry of a map; at most
 *     1000
 * @param elements max number of elements of all lists, sets and maps of one message together. They are counted because
 *     an element may take no bytes in the message, while an object always takes memory.
 * @param digits max number of digits of a {@code BigDecimal} or {@code BigInteger}; arithmetic on more digits is slow
 *     enough to be an attack
 * @param scale max scale of a {@code BigDecimal}, positive or negative: 1E+1000000000 is small until somebody prints it
 * @param growth max bytes of memory for each encoded byte, in addition to a first MiB that is free. The memory is
 *     counted where an object can be far larger than its encoded bytes, which is the case for messages, sets and maps.
 *     Only messages that are read are held to this limit.
 */
public record Limits(int messageBytes, int depth, int elements, int digits, int scale, int growth) {
    /** Limits that apply unless others are given: 4 MiB a message as in gRPC, and depth 100 as in protobuf-java. */
    public static final Limits STANDARD = new Limits(4 << 20, 100, 1_000_000, 4_096, 10_000, 16);

    public Limits {
        positive("messageBytes", messageBytes);
        positive("depth", depth);
        positive("elements", elements);
        positive("digits", digits);
        positive("scale", scale);
        positive("growth", growth);
        if (depth > 1_000) {
            throw new IllegalArgumentException(
                    "depth: " + depth + " (expected: at most 1000, so that no stack overflows)");
        }
    }

    private static void positive(String name, int value) {
        if (value <= 0) {
            throw new IllegalArgumentException(name + ": " + value + " (expected: > 0)");
        }
    }
}
