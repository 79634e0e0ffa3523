package dev.parley.spi.messages;

import java.util.List;

/** Each leaf's answer, in the order in which the topology calls them. */
public record GatheredTypes(List<Part> parts) {
    /** What one leaf answered. */
    public record Part(String service, TestModelAllTypesList answer) {}

    public GatheredTypes {
        parts = List.copyOf(parts);
    }
}
