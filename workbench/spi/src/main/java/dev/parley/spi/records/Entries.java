package dev.parley.spi.records;

import java.util.List;

/** All records, in the order of their ids. */
public record Entries(List<Entry> entries) {
    public Entries {
        entries = List.copyOf(entries);
    }
}
