package dev.parley.analysis;

import dev.parley.model.Metric;
import java.util.SplittableRandom;

/**
 * The middle over restarts, with its 95 % interval: the mean of a {@linkplain Metric#isMean metric that has one}, the
 * median of any other.
 *
 * @param value NaN where nothing was measured
 */
public record Estimate(double value, double low, double high) {
    static final Estimate NONE = new Estimate(Double.NaN, Double.NaN, Double.NaN);

    static Estimate of(Sample sample, long seed) {
        return of(sample, false, seed);
    }

    static Estimate of(Metric metric, Sample sample, long seed) {
        return of(sample, metric.isMean(), seed);
    }

    /** Value and interval describe the same middle: a mean has the interval of a mean. */
    private static Estimate of(Sample sample, boolean isMean, long seed) {
        if (sample.count() == 0) {
            return NONE;
        }
        double value = sample.middle(isMean);
        double[] draws = sample.draws(new SplittableRandom(seed), isMean);
        // redrawn seconds may miss the value itself where the distribution is lumpy; an interval always holds its
        // estimate
        return new Estimate(
                value, Math.min(value, Sample.quantile(draws, 0.025)), Math.max(value, Sample.quantile(draws, 0.975)));
    }

    public boolean isPresent() {
        return !Double.isNaN(value);
    }
}
