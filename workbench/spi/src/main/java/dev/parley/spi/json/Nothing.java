package dev.parley.spi.json;

/** What a GET sends, and what is in its reply: the status says it all. */
public record Nothing() {}
