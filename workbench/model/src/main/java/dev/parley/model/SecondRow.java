package dev.parley.model;

/**
 * One second of a trial: how many requests ended how, and the response times of those that met the limit.
 *
 * @param second since the window began, from 0; negative seconds are warm-up
 * @param responseTimes HdrHistogram, nanoseconds, compressed V2 encoding
 */
public record SecondRow(
        int trialId,
        int second,
        long replied,
        long late,
        long wrong,
        long failed,
        long notSent,
        byte[] responseTimes) {}
