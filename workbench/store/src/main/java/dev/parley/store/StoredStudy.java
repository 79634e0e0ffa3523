package dev.parley.store;

/**
 * The study that a run carries out, as the store keeps it.
 *
 * @param digest the same for the same study, and for no other
 * @param text from which the study can be read again
 */
public record StoredStudy(String digest, String text) {}
