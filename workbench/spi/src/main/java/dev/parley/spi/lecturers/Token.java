package dev.parley.spi.lecturers;

/** What every other request must carry. */
public record Token(String token) {}
