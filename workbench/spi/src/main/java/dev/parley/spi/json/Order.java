package dev.parley.spi.json;

import java.util.List;

/**
 * A document of an everyday kind. Its JSON takes as many bytes as the message says; {@code note} fills what the lines
 * leave over.
 */
public record Order(String id, String customer, List<Line> lines, String note) {
    /**
     * Some pieces of one thing.
     *
     * @param price of one piece, in cents
     */
    public record Line(String sku, int quantity, int price) {}

    public Order {
        lines = List.copyOf(lines);
    }
}
