package dev.parley.spi.records;

/** Which record. */
public record EntryId(String id) {}
