package dev.parley.protocol;

/**
 * The greeting, which is the first line of each side.
 *
 * @param version of the protocol that this side speaks
 */
record Hello(int version) implements Message {}
