package dev.parley.analysis;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * One metric of one technology in one situation: a value a restart, and for each restart what it would have been with its seconds drawn
 * again. The bootstrap is hierarchical, restarts first, then seconds, after Kalibera and Jones (ISMM 2013).
 *
 * @param points as measured, one a restart
 * @param pools per restart, values from redrawn seconds; a single value where a restart has no seconds to draw from
 */
record Sample(double[] points, List<double[]> pools) {
    /** Enough for the ends of a 95 % interval to move by less than a percent of its width. */
    static final int DRAWS = 2_000;

    /** Redrawn values kept a restart: the outer draw picks among them. */
    static final int POOL = 120;

    static Sample ofPoints(double... points) {
        return new Sample(
                points, Arrays.stream(points).mapToObj(p -> new double[] {p}).toList());
    }

    int restarts() {
        return points.length;
    }

    double median() {
        return median(points.clone());
    }

    /** Medians over restarts, each of one draw. */
    double[] draws(SplittableRandom random) {
        double[] medians = new double[DRAWS];
        double[] picked = new double[points.length];
        for (int draw = 0; draw < DRAWS; draw++) {
            for (int i = 0; i < picked.length; i++) {
                double[] pool = pools.get(random.nextInt(pools.size()));
                picked[i] = pool[random.nextInt(pool.length)];
            }
            medians[draw] = median(picked);
        }
        return medians;
    }

    /** Sorts what it is given. */
    static double median(double[] values) {
        if (values.length == 0) {
            return Double.NaN;
        }
        Arrays.sort(values);
        int middle = values.length / 2;
        return values.length % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }

    /** The given share of sorted values lies at or below the result. */
    static double quantile(double[] sorted, double share) {
        int rank = (int) Math.ceil(share * sorted.length);
        return sorted[Math.clamp(rank - 1L, 0, sorted.length - 1)];
    }
}
