package dev.rpcx.internal.server;

/** Computes the weighted median of a few values. This class is not thread-safe. */
final class Medians {
    private final double[] values;
    private final double[] weights;
    private int size;
    private double all;

    Medians(int capacity) {
        values = new double[capacity];
        weights = new double[capacity];
    }

    void clear() {
        size = 0;
        all = 0;
    }

    /** Adds a value with its weight. A value with a weight of 0 or less is ignored. */
    void add(double value, double weight) {
        if (weight <= 0) {
            return;
        }
        int at = size++;
        while (at > 0 && values[at - 1] > value) {
            values[at] = values[at - 1];
            weights[at] = weights[at - 1];
            at--;
        }
        values[at] = value;
        weights[at] = weight;
        all += weight;
    }

    public int size() {
        return size;
    }

    /**
     * Returns the weighted median of the values, or 0 if there are none. It is the smallest value for which the values
     * up to and including it have at least half of the total weight.
     */
    double median() {
        double below = 0;
        for (int i = 0; i < size; i++) {
            below += weights[i];
            if (2 * below >= all) {
                return values[i];
            }
        }
        return 0;
    }
}
