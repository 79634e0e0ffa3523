package dev.parley.spi.records;

/** What a request for everything sends. */
public record Nothing() {}
