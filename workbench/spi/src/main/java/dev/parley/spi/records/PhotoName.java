package dev.parley.spi.records;

/** Which photo. */
public record PhotoName(String name) {}
