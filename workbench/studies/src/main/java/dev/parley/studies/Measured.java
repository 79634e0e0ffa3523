package dev.parley.studies;

import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import org.apache.commons.statistics.distribution.NormalDistribution;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * A measured figure and how sure it is; or none, and why.
 *
 * @param value NaN where there is none
 * @param draws what it would have been, had restarts and seconds been drawn again; of one length throughout a run, or a single value
 * @param restarts fresh starts it rests on, the fewest of its parts; {@link #CERTAIN} for a number
 * @param missing why there is none; empty where there is one
 */
public record Measured(double value, List<Double> draws, int restarts, String missing) {
    public static final int CERTAIN = Integer.MAX_VALUE;

    public Measured {
        draws = List.copyOf(draws);
    }

    public static Measured of(double value, double[] draws, int restarts) {
        return new Measured(value, Arrays.stream(draws).boxed().toList(), restarts, "");
    }

    public static Measured number(double value) {
        return new Measured(value, List.of(value), CERTAIN, "");
    }

    public static Measured missing(String why) {
        return new Measured(Double.NaN, List.of(), 0, why);
    }

    public boolean isMissing() {
        return !missing.isEmpty();
    }

    /** The share of draws at or below; the value itself always lies within what two such quantiles enclose. */
    public double low() {
        return isMissing() ? Double.NaN : Math.min(value, quantile(0.025));
    }

    public double high() {
        return isMissing() ? Double.NaN : Math.max(value, quantile(0.975));
    }

    /**
     * The lower end of an interval as wide as so few restarts ask for. {@link #low()} comes from draws of the restarts there are, and three of
     * them lie close together by chance more often than in one case of twenty. On logarithms; source of the factor: Hesterberg, What Teachers
     * Should Know About the Bootstrap, The American Statistician 2015.
     */
    double wideLow() {
        return widened(low());
    }

    double wideHigh() {
        return widened(high());
    }

    private double widened(double end) {
        if (restarts == CERTAIN || value <= 0 || end <= 0) {
            return end;
        }
        double t = TDistribution.of(restarts - 1.0).inverseSurvivalProbability(0.025);
        double normal = NormalDistribution.of(0, 1).inverseSurvivalProbability(0.025);
        return value * Math.pow(end / value, t / normal * Math.sqrt(restarts / (restarts - 1.0)));
    }

    /** The same in another unit. */
    public Measured times(double factor) {
        return factor == 1 ? this : with(number(factor), (x, y) -> x * y);
    }

    Measured with(Measured other, DoubleBinaryOperator operator) {
        if (isMissing()) {
            return this;
        }
        if (other.isMissing()) {
            return other;
        }
        double[] both = new double[Math.max(draws.size(), other.draws.size())];
        for (int i = 0; i < both.length; i++) {
            both[i] = operator.applyAsDouble(draws.get(i % draws.size()), other.draws.get(i % other.draws.size()));
        }
        double result = operator.applyAsDouble(value, other.value);
        return Double.isFinite(result)
                ? of(result, both, Math.min(restarts, other.restarts))
                : missing("a division by nothing");
    }

    private double quantile(double share) {
        List<Double> sorted = draws.stream().sorted().toList();
        int rank = (int) Math.ceil(share * sorted.size());
        return sorted.get(Math.clamp(rank - 1L, 0, sorted.size() - 1));
    }
}
