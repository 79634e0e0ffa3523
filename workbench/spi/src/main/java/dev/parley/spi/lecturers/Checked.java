package dev.parley.spi.lecturers;

/** Whose token it is. */
public record Checked(String user) {}
