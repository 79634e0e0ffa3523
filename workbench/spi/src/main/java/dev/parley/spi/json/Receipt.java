package dev.parley.spi.json;

import java.util.List;

/** The answer to an {@link Order}: the same shape, and the same size as JSON, with what each line comes to. */
public record Receipt(String id, String customer, List<Line> lines, String note) {
    /** @param total quantity times price, in cents */
    public record Line(String sku, int quantity, int total) {}

    public Receipt {
        lines = List.copyOf(lines);
    }
}
