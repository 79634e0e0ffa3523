package dev.parley.analysis;

/**
 * A metric of one technology in one situation, with what it would have been had restarts and seconds been drawn again: for whoever computes
 * with figures and wants the interval of the result.
 *
 * @param value median over restarts
 * @param draws as many as every other has, so that two can be paired
 * @param restarts fresh starts it rests on
 */
public record Redrawn(double value, double[] draws, int restarts) {}
