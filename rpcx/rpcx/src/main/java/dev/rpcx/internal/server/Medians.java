package dev.rpcx.internal.server;

/** Weighted median of a few values. Used by one thread at a time. */
final class Medians {
    private final double[] values;
    private final double[] weights;
    private int size;
    private double all;

    Medians(int most) {
        values = new double[most];
        weights = new double[most];
    }

    void clear() {
        size = 0;
        all = 0;
    }

    /** @param weight 0 for a value that is to be left out */
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

    /** The smallest value up to which the weights come to half of all weight; 0 if there is no value. */
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
