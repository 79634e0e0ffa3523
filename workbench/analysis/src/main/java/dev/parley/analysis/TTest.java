package dev.parley.analysis;

import java.util.Arrays;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * Student's t-test of whether a ratio is 1, on logarithms of restarts. A bootstrap draws from the restarts there are: three that lie on one
 * side of 1 by chance, as one in four triples does, make it sure of a difference.
 *
 * @param mean of the ratio's logarithm
 * @param error standard error of that mean
 * @param freedom degrees of freedom; under 1 where too few restarts can be used to know anything
 */
record TTest(double mean, double error, double freedom) {
    private static final TTest NONE = new TTest(0, Double.NaN, 0);

    /** Of ratios within a restart each. */
    static TTest paired(double[] ratios) {
        double[] logs = logs(ratios);
        return logs.length < 2 ? NONE : new TTest(mean(logs), Math.sqrt(variance(logs) / logs.length), logs.length - 1);
    }

    /** Of restarts that are no pairs, whose spreads may differ. Source: Welch, Biometrika 1947. */
    static TTest welch(double[] first, double[] second) {
        double[] x = logs(first);
        double[] y = logs(second);
        if (x.length < 2 || y.length < 2) {
            return NONE;
        }
        double ofX = variance(x) / x.length;
        double ofY = variance(y) / y.length;
        double both = ofX + ofY;
        double freedom = both == 0
                ? x.length + y.length - 2
                : both * both / (ofX * ofX / (x.length - 1) + ofY * ofY / (y.length - 1));
        return new TTest(mean(x) - mean(y), Math.sqrt(both), freedom);
    }

    /** Two-sided. */
    double p() {
        if (freedom < 1) {
            return 1;
        }
        if (error == 0) {
            return mean == 0 ? 1 : 0;
        }
        return 2 * TDistribution.of(freedom).survivalProbability(Math.abs(mean) / error);
    }

    /** What it would come to with {@code factor} times as many restarts that go as these did. */
    TTest times(double factor) {
        return new TTest(mean, error / Math.sqrt(factor), (freedom + 1) * factor - 1);
    }

    /** A restart in which nothing was answered has no ratio. */
    private static double[] logs(double[] values) {
        return Arrays.stream(values).map(Math::log).filter(Double::isFinite).toArray();
    }

    private static double mean(double[] values) {
        return Arrays.stream(values).average().orElse(Double.NaN);
    }

    private static double variance(double[] values) {
        double mean = mean(values);
        return Arrays.stream(values).map(v -> (v - mean) * (v - mean)).sum() / (values.length - 1);
    }
}
