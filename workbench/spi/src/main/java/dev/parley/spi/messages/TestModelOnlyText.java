package dev.parley.spi.messages;

/** One string. Source: kazanavicius, figure 2. */
public record TestModelOnlyText(String textField) {}
