package dev.rpcx.codec;

/**
 * What one message may hold, written or read.
 *
 * @param messageBytes encoded size
 * @param depth messages inside each other, the outermost counted
 * @param elements of all lists, sets and maps of one message together: an element may be of no bytes, an object never
 *     is
 * @param digits of a {@code BigDecimal} or {@code BigInteger}; arithmetic on more of them is slow enough to be an
 *     attack
 * @param scale of a {@code BigDecimal}, either way: 1E+1000000000 is small until somebody prints it
 * @param growth bytes of memory for each encoded byte, beyond a first megabyte that is free. Counted where an object
 *     can be far larger than its bytes: messages, sets and maps. Only read messages are held against it.
 */
public record Limits(int messageBytes, int depth, int elements, int digits, int scale, int growth) {
    /** 4 MiB as gRPC; depth 100 as protobuf-java. */
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
