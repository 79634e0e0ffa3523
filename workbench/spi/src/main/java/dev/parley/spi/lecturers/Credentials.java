package dev.parley.spi.lecturers;

/** The user who asks for a token. */
public record Credentials(String user, String password) {}
