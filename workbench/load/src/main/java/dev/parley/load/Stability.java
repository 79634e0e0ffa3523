package dev.parley.load;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Tells when a warm-up may end: the means of the last {@value #INTERVALS} intervals of half a second lie within {@value #BAND} of each
 * other. Not thread-safe.
 */
final class Stability {
    static final int INTERVALS = 4;
    /** Wider than a tie, narrower than the factor of two to ten that an unwarmed JVM shows. */
    static final double BAND = 0.10;

    private final Deque<Double> means = new ArrayDeque<>();

    void interval(double meanNs) {
        means.addLast(meanNs);
        if (means.size() > INTERVALS) {
            means.removeFirst();
        }
    }

    boolean isStable() {
        if (means.size() < INTERVALS) {
            return false;
        }
        double least = means.stream().mapToDouble(d -> d).min().orElse(0);
        double most = means.stream().mapToDouble(d -> d).max().orElse(0);
        return least > 0 && most / least <= 1 + BAND;
    }
}
