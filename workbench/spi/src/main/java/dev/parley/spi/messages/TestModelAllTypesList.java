package dev.parley.spi.messages;

import java.util.List;

/** {@code items.size() × 9 + 1} properties: the list itself counts as one. */
public record TestModelAllTypesList(List<TestModelAllTypes> items) {
    public TestModelAllTypesList {
        items = List.copyOf(items);
    }
}
