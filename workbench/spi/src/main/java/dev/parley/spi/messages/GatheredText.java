package dev.parley.spi.messages;

import java.util.List;

/** Each leaf's answer, in the order in which the topology calls them. */
public record GatheredText(List<Part> parts) {
    /** What one leaf answered. */
    public record Part(String service, TestModelOnlyText answer) {}

    public GatheredText {
        parts = List.copyOf(parts);
    }
}
