package dev.parley.spi.records;

/**
 * What was stored.
 *
 * @param sha256 of the content, in lower-case hexadecimal digits
 */
public record StoredPhoto(String name, int bytes, String sha256) {}
