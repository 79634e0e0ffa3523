package dev.parley.model;

/**
 * What is sent: a kind of message that a work knows, and its size, written {@code text:1000} or {@code types:100}. What the size counts
 * (characters, properties, bytes) is the kind's own affair; a kind without a size, such as {@code get}, has size 0.
 */
public record MessageSpec(String kind, int size) {
    public MessageSpec {
        if (!kind.matches("[a-z][a-z-]*")) {
            throw new BadInput("message", kind, "a kind such as text:1000 or types:100");
        }
        if (size < 0) {
            throw new BadInput("message " + kind, size, "a size of 0 or more");
        }
    }

    public static MessageSpec parse(String text) {
        int colon = text.indexOf(':');
        if (colon < 0) {
            return new MessageSpec(text.strip(), 0);
        }
        String size = text.substring(colon + 1).strip().replace("_", "");
        int scale = 1;
        if (size.endsWith("k")) {
            scale = 1000;
            size = size.substring(0, size.length() - 1);
        }
        try {
            return new MessageSpec(text.substring(0, colon).strip(), Math.multiplyExact(Integer.parseInt(size), scale));
        } catch (ArithmeticException | NumberFormatException e) {
            throw new BadInput("message", text, "kind:size with a whole number, such as text:1000");
        }
    }

    @Override
    public String toString() {
        return size == 0 ? kind : kind + ":" + size;
    }
}
