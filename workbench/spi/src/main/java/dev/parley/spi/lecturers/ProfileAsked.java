package dev.parley.spi.lecturers;

/** Asks for one lecturer by id. */
public record ProfileAsked(String token, String id_sdm) {}
