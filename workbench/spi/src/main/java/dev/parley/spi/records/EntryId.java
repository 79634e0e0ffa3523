package dev.parley.spi.records;

/** The id of the record that is asked for. */
public record EntryId(String id) {}
