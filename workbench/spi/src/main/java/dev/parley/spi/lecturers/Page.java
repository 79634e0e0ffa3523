package dev.parley.spi.lecturers;

/** The lecturers from one on, in the order in which they are stored; fewer at the end. */
public record Page(String token, int from, int count) {}
