package dev.parley.spi.records;

/**
 * A record of about 1 kB.
 *
 * @param id chosen by whoever adds it: a UUID
 */
public record Entry(String id, String title, String author, String body) {}
