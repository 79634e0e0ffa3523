package dev.parley.spi.lecturers;

/** All lecturers of exactly that name. */
public record NameAsked(String token, String nama_sdm) {}
