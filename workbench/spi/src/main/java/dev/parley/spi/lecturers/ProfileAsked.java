package dev.parley.spi.lecturers;

/** One lecturer by id. */
public record ProfileAsked(String token, String id_sdm) {}
