package dev.parley.report;

/** A name and what stands behind it, as a page lists them. */
record Fact(String name, String value) {}
