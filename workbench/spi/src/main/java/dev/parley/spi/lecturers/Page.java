package dev.parley.spi.lecturers;

/**
 * Asks for {@code count} lecturers from number {@code from} on, in the order in which they are stored; at the end there
 * are fewer.
 */
public record Page(String token, int from, int count) {}
