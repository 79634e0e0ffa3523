package dev.parley.analysis;

import dev.parley.model.Metric;
import java.util.SplittableRandom;

/**
 * A median over restarts with its 95 % interval; of a share of requests the mean, since a restart in which next to none
 * was answered must not vanish behind two in which all were.
 *
 * @param value NaN where nothing was measured
 */
public record Estimate(double value, double low, double high) {
    static final Estimate NONE = new Estimate(Double.NaN, Double.NaN, Double.NaN);

    static Estimate of(Sample sample, long seed) {
        return of(sample, false, seed);
    }

    static Estimate of(Metric metric, Sample sample, long seed) {
        return of(sample, isMean(metric), seed);
    }

    /** True for a share of requests, whose middle is the mean over restarts; all else has the median. */
    static boolean isMean(Metric metric) {
        return metric == Metric.SUCCESS_SHARE;
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
