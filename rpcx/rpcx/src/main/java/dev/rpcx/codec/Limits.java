package dev.rpcx.codec;

/**
 * Limits of one message. They are checked when a message is written and when it is read; {@code elements} and
 * {@code memoryPerByte} only when it is read. The constructor throws an {@code IllegalArgumentException} for a value
 * that is not positive, and for a depth of more than 1000.
 *
 * @param messageBytes max encoded size in bytes; default 4 MiB
 * @param depth max number of messages nested in each other, including the outermost one; a map entry counts as a
 *     message; at most 1000, default 100
 * @param elements max number of elements of all lists, sets and maps of one message together; default 1,000,000. An
 *     element may have a single byte in the message, but always takes more memory.
 * @param digits max number of digits of a {@code BigDecimal} or {@code BigInteger}; default 4,096. Arithmetic on more
 *     digits is slow enough for an attack. Slightly more digits may pass, because the check assumes 3.33 bits for each
 *     digit.
 * @param scale max scale of a {@code BigDecimal}, positive or negative; default 10,000. The number 1E+1000000000 is
 *     sent in a few bytes, but printed in full it has a thousand million digits.
 * @param memoryPerByte max bytes of memory for each encoded byte, in addition to 1 MiB for each message; default 16.
 *     Only the memory of messages, sets and maps is counted, since they can be far larger than their encoded bytes.
 */
public record Limits(int messageBytes, int depth, int elements, int digits, int scale, int memoryPerByte) {
    /** Default limits. A message may have 4 MiB as in gRPC, and a depth of 100 as in protobuf-java. */
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
