package dev.parley.analysis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.commons.statistics.descriptive.Median;
import org.apache.commons.statistics.descriptive.Quantile;

/**
 * One metric of one technology in one situation: a value a restart, and for each restart what it would have been with
 * its seconds drawn again. The bootstrap is hierarchical, restarts first, then seconds, after Kalibera and Jones (ISMM
 * 2013).
 *
 * @param restarts which restart each point belongs to: the same restart of two technologies is the same block of
 *     interleaved boots
 * @param points as measured, one a restart
 * @param pools per restart, values from redrawn seconds; a single value where a restart has no seconds to draw from
 * @param tried restarts that ended, with a point here or without: where they are more, the points are those that
 *     survived
 */
record Sample(int[] restarts, double[] points, List<double[]> pools, int tried) {
    /** Enough for the ends of a 95 % interval to move by less than a percent of its width. */
    static final int DRAWS = 2_000;

    /** Redrawn values kept a restart: the outer draw picks among them. */
    static final int POOL = 120;

    /** A quantile is one of the values. Source: Hyndman and Fan, The American Statistician 1996, definition 1. */
    private static final Quantile QUANTILE = Quantile.withDefaults().with(Quantile.EstimationMethod.HF1);

    /** Nothing was measured. */
    static final Sample NONE = ofPoints();

    /** Points of restarts 1, 2, 3 and so on. */
    static Sample ofPoints(double... points) {
        SortedMap<Integer, Double> byRestart = new TreeMap<>();
        for (double point : points) {
            byRestart.put(byRestart.size() + 1, point);
        }
        return of(byRestart);
    }

    /** A point a restart, those that are not finite left out. */
    static Sample of(SortedMap<Integer, Double> byRestart) {
        SortedMap<Integer, Double> finite = new TreeMap<>(byRestart);
        finite.values().removeIf(value -> !Double.isFinite(value));
        return new Sample(
                finite.keySet().stream().mapToInt(Integer::intValue).toArray(),
                finite.values().stream().mapToDouble(Double::doubleValue).toArray(),
                finite.values().stream().map(value -> new double[] {value}).toList(),
                finite.size());
    }

    /** The same, of a cell whose trials ended in so many restarts. */
    Sample ofTried(int ended) {
        return new Sample(restarts, points, pools, Math.max(ended, points.length));
    }

    /** A logarithm can be taken of every point: none is of a restart in which nothing was answered. */
    boolean isPositive() {
        return Arrays.stream(points).allMatch(point -> point > 0 && Double.isFinite(point));
    }

    /** The same points, with values from redrawn seconds for each of them. */
    Sample redrawn(List<double[]> each) {
        return each.size() == points.length ? new Sample(restarts, points, each, tried) : this;
    }

    int count() {
        return points.length;
    }

    /**
     * Restart by restart, how this one stands to another: the blocks that both have, as measured and as redrawn. What
     * slows a whole block slows both, and is no difference between them. A restart that only one of the two has is left
     * out of both.
     */
    Sample over(Sample other, SplittableRandom random) {
        int[] both = IntStream.range(0, points.length)
                .filter(i -> other.indexOf(restarts[i]) >= 0)
                .toArray();
        double[] ratios = new double[both.length];
        List<double[]> redrawn = new ArrayList<>();
        for (int k = 0; k < both.length; k++) {
            int mine = both[k];
            int others = other.indexOf(restarts[mine]);
            ratios[k] = points[mine] / other.points[others];
            double[] pool = new double[POOL];
            for (int d = 0; d < POOL; d++) {
                pool[d] = any(pools.get(mine), random) / any(other.pools.get(others), random);
            }
            redrawn.add(pool);
        }
        return new Sample(
                IntStream.of(both).map(i -> restarts[i]).toArray(), ratios, redrawn, Math.max(tried, other.tried));
    }

    private int indexOf(int restart) {
        for (int i = 0; i < restarts.length; i++) {
            if (restarts[i] == restart) {
                return i;
            }
        }
        return -1;
    }

    private static double any(double[] pool, SplittableRandom random) {
        return pool[random.nextInt(pool.length)];
    }

    double median() {
        return median(points.clone());
    }

    /** No draw is below it. */
    double least() {
        return pools.stream().flatMapToDouble(Arrays::stream).min().orElse(Double.NaN);
    }

    /** No draw is above it. */
    double most() {
        return pools.stream().flatMapToDouble(Arrays::stream).max().orElse(Double.NaN);
    }

    /** Middles over restarts drawn again, ascending. */
    double[] draws(SplittableRandom random, boolean isMean) {
        double[] middles = new double[DRAWS];
        Arrays.setAll(middles, draw -> middle(picked(random), isMean));
        Arrays.sort(middles);
        return middles;
    }

    /** The median over restarts drawn again, each with what its seconds drawn again made of it. */
    double draw(SplittableRandom random) {
        return median(picked(random));
    }

    private double[] picked(SplittableRandom random) {
        double[] picked = new double[points.length];
        for (int i = 0; i < picked.length; i++) {
            picked[i] = any(pools.get(random.nextInt(pools.size())), random);
        }
        return picked;
    }

    /** The middle over restarts as measured. */
    double middle(boolean isMean) {
        return middle(points.clone(), isMean);
    }

    /** Reorders what it is given. */
    private static double middle(double[] values, boolean isMean) {
        return isMean ? Arrays.stream(values).average().orElse(Double.NaN) : median(values);
    }

    /** Reorders what it is given; NaN for nothing. */
    static double median(double[] values) {
        return Median.withDefaults().evaluate(values);
    }

    /** The given share of sorted values lies at or below the result. */
    static double quantile(double[] sorted, double share) {
        return QUANTILE.evaluate(sorted.length, i -> sorted[i], share);
    }
}
