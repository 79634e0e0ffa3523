package dev.parley.studies;

import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.DoubleBinaryOperator;
import org.apache.commons.statistics.descriptive.Median;
import org.apache.commons.statistics.descriptive.Quantile;
import org.apache.commons.statistics.distribution.NormalDistribution;
import org.apache.commons.statistics.distribution.TDistribution;
import org.jspecify.annotations.Nullable;

/**
 * A measured figure and how sure it is; or none, and why. Figures are computed with restart by restart: a ratio is the
 * middle over restarts of the ratio within each, and its interval is that of the same middle, so that what slowed a
 * whole restart is no difference between two technologies. For one thread at a time.
 */
public final class Measured {
    public static final int CERTAIN = Integer.MAX_VALUE;

    /** Enough for the ends of a 95 % interval to move by less than a percent of its width. */
    private static final int DRAWS = 2_000;

    private static final SortedMap<Integer, Restart> NO_RESTARTS = Collections.emptySortedMap();

    private static final long SEED = 0x9E3779B97F4A7C15L;

    /** A quantile is one of the values. Source: Hyndman and Fan, The American Statistician 1996, definition 1. */
    private static final Quantile QUANTILE = Quantile.withDefaults().with(Quantile.EstimationMethod.HF1);

    private final SortedMap<Integer, Restart> byRestart;
    private final boolean isMean;
    private final double value;
    private final int restarts;
    private final int tried;
    private final String missing;

    /** Ascending; made when it is first asked for, since most figures are only computed with. */
    private double @Nullable [] drawn;

    /**
     * One restart.
     *
     * @param value as measured
     * @param redrawn what it would have been, had its seconds been drawn again; at least one
     */
    public record Restart(double value, double[] redrawn) {
        private Restart with(Restart other, DoubleBinaryOperator operator) {
            double[] both = new double[Math.max(redrawn.length, other.redrawn.length)];
            Arrays.setAll(
                    both,
                    i -> operator.applyAsDouble(redrawn[i % redrawn.length], other.redrawn[i % other.redrawn.length]));
            return new Restart(operator.applyAsDouble(value, other.value), both);
        }
    }

    private Measured(
            SortedMap<Integer, Restart> byRestart,
            boolean isMean,
            double value,
            int restarts,
            int tried,
            String missing) {
        this.byRestart = byRestart;
        this.isMean = isMean;
        this.value = value;
        this.restarts = restarts;
        this.tried = tried;
        this.missing = missing;
    }

    /**
     * @param byRestart by its number: restarts of the same number are neighbours in time; at least one
     * @param tried restarts that ended, with a figure or without
     * @param isMean true where the middle over restarts is the mean, as that of shares is; otherwise it is the median
     */
    public static Measured of(Map<Integer, Restart> byRestart, int tried, boolean isMean) {
        SortedMap<Integer, Restart> sorted = new TreeMap<>(byRestart);
        double[] values = sorted.values().stream().mapToDouble(Restart::value).toArray();
        return new Measured(sorted, isMean, middle(values, isMean), values.length, tried, "");
    }

    /** Restarts 1, 2, 3 and so on, each a value without seconds to draw from. */
    public static Measured ofRestarts(double... values) {
        SortedMap<Integer, Restart> byRestart = new TreeMap<>();
        for (double one : values) {
            byRestart.put(byRestart.size() + 1, new Restart(one, new double[] {one}));
        }
        return of(byRestart, values.length, false);
    }

    public static Measured number(double value) {
        return new Measured(NO_RESTARTS, false, value, CERTAIN, 0, "");
    }

    public static Measured missing(String why) {
        return new Measured(NO_RESTARTS, false, Double.NaN, 0, 0, why);
    }

    public boolean isMissing() {
        return !missing.isEmpty();
    }

    /** NaN where there is none. */
    public double value() {
        return value;
    }

    /** Fresh starts it rests on; {@link #CERTAIN} for a number. */
    public int restarts() {
        return restarts;
    }

    /** Why there is none; empty where there is one. */
    public String missing() {
        return missing;
    }

    /** False where half of the restarts there were, or more, have no figure: the others are survivors. */
    boolean isOfMost() {
        return restarts > tried / 2;
    }

    /** {@code 3 of 5}, of a figure that does not rest on every restart there was; empty for any other. */
    public String survivors() {
        return !isMissing() && restarts < tried ? restarts + " of " + tried : "";
    }

    /** {@code 5}, or {@code 3 of 5} of survivors; empty for a number and where there is none. */
    public String count() {
        return restarts == CERTAIN || isMissing() ? "" : restarts < tried ? survivors() : Integer.toString(restarts);
    }

    /** The share of draws at or below; the value itself always lies within what two such quantiles enclose. */
    public double low() {
        return isMissing() ? Double.NaN : Math.min(value, quantile(0.025));
    }

    public double high() {
        return isMissing() ? Double.NaN : Math.max(value, quantile(0.975));
    }

    /**
     * The lower end of an interval as wide as so few restarts ask for. {@link #low()} comes from draws of the restarts
     * there are, and three of them lie close together by chance more often than in one case of twenty. On logarithms;
     * source of the factor: Hesterberg, What Teachers Should Know About the Bootstrap, The American Statistician 2015.
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

    /**
     * Within each restart that both have; one that only one side has is left out of both, and counts as tried. Restarts
     * of two runs are no
     * blocks of one another, and are paired by their number all the same, which makes the result neither surer nor
     * another.
     */
    Measured with(Measured other, DoubleBinaryOperator operator) {
        if (isMissing()) {
            return this;
        }
        if (other.isMissing()) {
            return other;
        }
        if (restarts == CERTAIN && other.restarts == CERTAIN) {
            double result = operator.applyAsDouble(value, other.value);
            return Double.isFinite(result) ? number(result) : missing("a division by nothing");
        }
        SortedMap<Integer, Restart> both = new TreeMap<>();
        for (int restart : (restarts == CERTAIN ? other : this).byRestart.keySet()) {
            at(restart)
                    .ifPresent(mine ->
                            other.at(restart).ifPresent(others -> both.put(restart, mine.with(others, operator))));
        }
        if (both.isEmpty()) {
            return missing("no restart has both sides");
        }
        return both.values().stream().allMatch(one -> Double.isFinite(one.value()))
                ? of(both, Math.max(tried, other.tried), isMean || other.isMean)
                : missing("a division by nothing");
    }

    private Optional<Restart> at(int restart) {
        return restarts == CERTAIN
                ? Optional.of(new Restart(value, new double[] {value}))
                : Optional.ofNullable(byRestart.get(restart));
    }

    private double quantile(double share) {
        double[] sorted = sortedDraws();
        return QUANTILE.evaluate(sorted.length, i -> sorted[i], share);
    }

    private double[] sortedDraws() {
        double[] sorted = drawn;
        if (sorted == null) {
            sorted = restarts == CERTAIN ? new double[] {value} : draws();
            drawn = sorted;
        }
        return sorted;
    }

    /** Restarts drawn again, each with what its seconds drawn again made of it. */
    private double[] draws() {
        SplittableRandom random = new SplittableRandom(SEED);
        Restart[] all = byRestart.values().toArray(Restart[]::new);
        double[] picked = new double[all.length];
        double[] draws = new double[DRAWS];
        for (int draw = 0; draw < DRAWS; draw++) {
            for (int i = 0; i < picked.length; i++) {
                double[] redrawn = all[random.nextInt(all.length)].redrawn;
                picked[i] = redrawn[random.nextInt(redrawn.length)];
            }
            draws[draw] = middle(picked, isMean);
        }
        Arrays.sort(draws);
        return draws;
    }

    /** Reorders what it is given. */
    private static double middle(double[] values, boolean isMean) {
        return isMean
                ? Arrays.stream(values).average().orElse(Double.NaN)
                : Median.withDefaults().evaluate(values);
    }
}
