package dev.parley.analysis;

import java.util.Arrays;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * Student's t-test of whether a ratio is 1, on logarithms of restarts; or of whether a figure is at a border. A
 * bootstrap draws from the restarts there are: three that lie on one side by chance, as one in four triples does, make
 * it sure of a difference.
 *
 * @param mean of the ratio's logarithm, or of how far the figure is from the border
 * @param error standard error of that mean
 * @param freedom degrees of freedom; under 1 where too few restarts can be used to know anything
 */
record TTest(double mean, double error, double freedom) {
    static final TTest NONE = new TTest(0, Double.NaN, 0);

    /** The test of ratios, one from each restart; {@link #NONE} where one of them has no logarithm. */
    static TTest paired(double[] ratios) {
        double[] logs = logs(ratios);
        return logs.length < 2 ? NONE : new TTest(mean(logs), Math.sqrt(variance(logs) / logs.length), logs.length - 1);
    }

    /** The test of restarts that are no pairs and whose spreads may differ. Source: Welch, Biometrika 1947. */
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

    /**
     * The test of whether values have a border as their mean, on the values themselves; {@link #NONE} where one of them
     * is not finite.
     */
    static TTest against(double[] values, double border) {
        double[] off = Arrays.stream(values).map(value -> value - border).toArray();
        return off.length < 2 || !Arrays.stream(off).allMatch(Double::isFinite)
                ? NONE
                : new TTest(mean(off), Math.sqrt(variance(off) / off.length), off.length - 1);
    }

    /** The two-sided p of the ratio being 1, or of the figure at its border; 1 where too few restarts can be used. */
    double p() {
        if (freedom < 1) {
            return 1;
        }
        if (error == 0) {
            return mean == 0 ? 1 : 0;
        }
        return 2 * TDistribution.of(freedom).survivalProbability(Math.abs(mean) / error);
    }

    /**
     * How likely a ratio looks as near to 1 as this one where it is as far from 1 as the border, whichever way: two
     * one-sided tests, of which the less sure counts. Source: Schuirmann, Journal of Pharmacokinetics and
     * Biopharmaceutics 1987.
     *
     * @param border of the ratio's logarithm, above 0
     */
    double pBeyond(double border) {
        if (freedom < 1) {
            return 1;
        }
        double within = border - Math.abs(mean);
        if (error == 0) {
            return within > 0 ? 0 : 1;
        }
        return TDistribution.of(freedom).survivalProbability(within / error);
    }

    /** The test that {@code factor} times as many restarts would give, if they went as these did. */
    TTest times(double factor) {
        return new TTest(mean, error / Math.sqrt(factor), (freedom + 1) * factor - 1);
    }

    /**
     * The logarithms of all values; empty where one of them has none. A test of those that are left would be of other
     * restarts than the figure beside it.
     */
    private static double[] logs(double[] values) {
        double[] logs = Arrays.stream(values).map(Math::log).toArray();
        return Arrays.stream(logs).allMatch(Double::isFinite) ? logs : new double[0];
    }

    /*
     * The t-test of commons-statistics has the same definition. But it gives no standard error, which pBeyond and times
     * need, takes whole numbers of restarts only, and has no p where restarts do not differ at all. The last digits of
     * its mean and variance differ from those of the JDK's sums, and summary.json has p with all its digits.
     */
    private static double mean(double[] values) {
        return Arrays.stream(values).average().orElse(Double.NaN);
    }

    private static double variance(double[] values) {
        double mean = mean(values);
        return Arrays.stream(values).map(v -> (v - mean) * (v - mean)).sum() / (values.length - 1);
    }
}
