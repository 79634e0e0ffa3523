package dev.parley.spi.lecturers;

/** The token that every other request must carry. */
public record Token(String token) {}
