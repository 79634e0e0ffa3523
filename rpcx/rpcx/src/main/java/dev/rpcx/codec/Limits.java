package dev.rpcx.codec;

/**
 * Bounds the size and depth of one message, and the memory for reading it. The limits apply when a message is written
 * and when it is read, except {@code elements} and {@code memoryPerByte}, which apply only when it is read. The
 * constructor throws an {@code IllegalArgumentException} for a value that is not positive, and for a depth of more than
 * 1000.
 *
 * @param messageBytes maximum encoded size in bytes; the default is 4 MiB
 * @param depth maximum number of messages nested in each other, including the outermost one and entries of maps; at
 *     most 1000, and 100 by default
 * @param elements maximum number of elements of all lists, sets and maps of one message together; the default is
 *     1,000,000. An element can be a single byte in the message, but always takes more memory.
 * @param digits maximum number of digits of a {@code BigDecimal} or {@code BigInteger}; the default is 4,096.
 *     Arithmetic on more digits is slow enough for an attack. The check assumes 3.33 bits for each digit, so that
 *     slightly more digits can pass.
 * @param scale maximum scale of a {@code BigDecimal}, positive or negative; the default is 10,000. The number
 *     1E+1000000000 is sent in a few bytes, but has a thousand million digits when it is printed in full.
 * @param memoryPerByte maximum number of bytes of memory for each encoded byte, in addition to 1 MiB for each message;
 *     the default is 16. Only messages, sets and maps are counted, each without the objects in it, since a message, set
 *     or map can take far more memory than its encoded bytes.
 */
public record Limits(int messageBytes, int depth, int elements, int digits, int scale, int memoryPerByte) {
    /**
     * The default limits. The message size of 4 MiB is the same as in gRPC, and the depth of 100 the same as in
     * protobuf-java.
     */
    public static final Limits STANDARD = new Limits(4 << 20, 100, 1_000_000, 4_096, 10_000, 16);

    public Limits {
        positive("messageBytes", messageBytes);
        positive("depth", depth);
        positive("elements", elements);
        positive("digits", digits);
        positive("scale", scale);
        positive("memoryPerByte", memoryPerByte);
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
