package dev.parley.spi.lecturers;

/** The user whose token was checked. */
public record Checked(String user) {}
