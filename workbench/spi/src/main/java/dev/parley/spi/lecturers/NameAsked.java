package dev.parley.spi.lecturers;

/** Asks for all lecturers of exactly that name. */
public record NameAsked(String token, String nama_sdm) {}
