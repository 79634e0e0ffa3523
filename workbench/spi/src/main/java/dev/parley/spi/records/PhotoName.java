package dev.parley.spi.records;

/** The name of the photo that is asked for. */
public record PhotoName(String name) {}
