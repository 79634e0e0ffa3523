package dev.parley.spi.lecturers;

/** Who asks for a token. */
public record Credentials(String user, String password) {}
