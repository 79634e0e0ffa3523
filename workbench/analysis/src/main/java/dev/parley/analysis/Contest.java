package dev.parley.analysis;

import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.DoubleSupplier;

/**
 * All pairs of technologies in one situation and metric. Two differ only when the interval of their ratio excludes 1, a bootstrap and a
 * t-test are both sure after Holm's correction, and the effect is above the tie band, which is never narrower than the noise floor; they are
 * equivalent when the interval lies inside the band; otherwise the comparison is undecided.
 */
final class Contest {
    /** Two technologies within 5 % of each other serve an architect alike; widened to the noise floor where the machine is noisier. */
    static final double TIE_BAND = 0.05;

    private static final double LEVEL = 0.05;

    /** Fewer restarts than this cannot tell a technology from the mood of a restart. */
    private static final int LEAST_RESTARTS = 3;

    private static final int SPLITS = 200;

    /** So many draws beyond 1 tell how rare they are; fewer, and more are drawn where Holm's correction needs to know. */
    private static final int TAIL = 10;

    private final Metric metric;
    private final long seed;

    Contest(Metric metric, long seed) {
        this.metric = metric;
        this.seed = seed;
    }

    /** The outcome for {@code first} held against {@code second}. */
    record Result(
            String first,
            String second,
            Estimate ratio,
            double p,
            double tieBand,
            double noiseFloor,
            Verdict verdict) {}

    /** Two samples of one thing, such as a technology in two runs. */
    record Sides(Sample first, Sample second) {
        static final Sides NONE = new Sides(Sample.ofPoints(), Sample.ofPoints());
    }

    /** Each thing's first side held against its own second; Holm's correction is over all of them. */
    <K> Map<K, Result> eachAgainstItself(Map<K, Sides> things) {
        Map<K, Pair> pairs = new LinkedHashMap<>();
        int drawsMost = drawsMost(things.size());
        things.forEach((thing, sides) -> {
            String name = thing.toString();
            Pair pair = unpaired(sides, new SplittableRandom(seed ^ name.hashCode()), drawsMost);
            // named after the thing, so that no two pairs are equal
            pairs.put(thing, new Pair(name, name, pair.ratio(), pair.p(), pair.restarts(), pair.test()));
        });
        Map<Pair, Double> corrected = holm(List.copyOf(pairs.values()));
        Map<K, Result> results = new LinkedHashMap<>();
        pairs.forEach((thing, pair) -> {
            Sides sides = things.getOrDefault(thing, Sides.NONE);
            double floor = noiseFloor(List.of(sides.first(), sides.second()));
            double band = Double.isNaN(floor) ? TIE_BAND : Math.max(TIE_BAND, floor);
            double p = corrected.getOrDefault(pair, 1.0);
            results.put(
                    thing,
                    new Result(pair.first(), pair.second(), pair.ratio(), p, band, floor, verdict(pair, p, band)));
        });
        return results;
    }

    /** @param p before Holm's correction: the less sure of the bootstrap and of {@code test} */
    private record Pair(String first, String second, Estimate ratio, double p, int restarts, TTest test) {}

    List<Result> of(Map<String, Sample> samples) {
        // split, since SplittableRandoms of seeds in a simple relation give the same numbers, shifted
        SplittableRandom random = new SplittableRandom(seed);
        List<String> names = List.copyOf(samples.keySet());
        List<Pair> pairs = new ArrayList<>();
        int drawsMost = drawsMost(names.size() * (names.size() - 1) / 2);
        for (int a = 0; a < names.size(); a++) {
            for (int b = a + 1; b < names.size(); b++) {
                pairs.add(pair(names.get(a), names.get(b), samples, random.split(), drawsMost));
            }
        }
        double floor = noiseFloor(samples.values());
        double band = Double.isNaN(floor) ? TIE_BAND : Math.max(TIE_BAND, floor);
        Map<Pair, Double> corrected = holm(pairs);
        return pairs.stream()
                .map(p -> new Result(
                        p.first(),
                        p.second(),
                        p.ratio(),
                        corrected.getOrDefault(p, 1.0),
                        band,
                        floor,
                        verdict(p, corrected.getOrDefault(p, 1.0), band)))
                .toList();
    }

    /** Among so many comparisons Holm's correction asks the surest for a p of {@link #LEVEL} / comparisons: draws enough to see one. */
    private static int drawsMost(int comparisons) {
        return Math.max(Sample.DRAWS, (int) Math.ceil(2 * TAIL * comparisons / LEVEL));
    }

    /** The ratio of the medians: restarts of two runs are no blocks of one another. */
    private static Pair unpaired(Sides sides, SplittableRandom random, int drawsMost) {
        Sample first = sides.first();
        Sample second = sides.second();
        return pair(
                "first",
                "second",
                new Draws(
                        () -> first.draw(random) / second.draw(random),
                        first.least() > second.most() || first.most() < second.least(),
                        drawsMost),
                first.median() / second.median(),
                Math.min(first.count(), second.count()),
                TTest.welch(first.points(), second.points()));
    }

    /**
     * The ratio is the median over restarts of the ratio within each: boots are interleaved in blocks, one a restart, and a machine that
     * grows slower slows both of a block.
     */
    private static Pair pair(String a, String b, Map<String, Sample> samples, SplittableRandom random, int drawsMost) {
        Sample first = samples.getOrDefault(a, Sample.ofPoints());
        Sample second = samples.getOrDefault(b, Sample.ofPoints());
        Sample paired = first.over(second, random);
        if (paired.count() == 0) {
            return new Pair(a, b, Estimate.NONE, 1, 0, TTest.paired(new double[0]));
        }
        return pair(
                a,
                b,
                new Draws(() -> paired.draw(random), paired.least() > 1 || paired.most() < 1, drawsMost),
                paired.median(),
                paired.count(),
                TTest.paired(paired.points()));
    }

    /** @param isOneSided no draw can be on the other side of 1: what more of them would find is known without drawing */
    private record Draws(DoubleSupplier ratio, boolean isOneSided, int most) {}

    /** Draws until it is known how rare ratios on the other side of 1 are, after Besag and Clifford (Biometrika 1991). */
    private static Pair pair(String a, String b, Draws from, double ratio, int restarts, TTest test) {
        double[] ratios = new double[Sample.DRAWS];
        int draws = 0;
        int under = 0;
        int over = 0;
        while (draws < Sample.DRAWS || !from.isOneSided() && draws < from.most() && Math.min(under, over) < TAIL) {
            double one = from.ratio().getAsDouble();
            under += one <= 1 ? 1 : 0;
            over += one >= 1 ? 1 : 0;
            if (draws == ratios.length) {
                ratios = Arrays.copyOf(ratios, Math.min(2 * draws, from.most()));
            }
            ratios[draws++] = one;
        }
        ratios = Arrays.copyOf(ratios, draws);
        Arrays.sort(ratios);
        double p = Math.min(1, 2.0 * (Math.min(under, over) + 1) / ((from.isOneSided() ? from.most() : draws) + 1));
        Estimate estimate = new Estimate(
                ratio,
                Math.min(ratio, Sample.quantile(ratios, 0.025)),
                Math.max(ratio, Sample.quantile(ratios, 0.975)));
        return new Pair(a, b, estimate, Math.max(p, test.p()), restarts, test);
    }

    /** Holm (1979): the k-th smallest of m p-values times m − k + 1, never smaller than the one before. */
    private static Map<Pair, Double> holm(List<Pair> pairs) {
        List<Pair> ascending =
                pairs.stream().sorted(Comparator.comparingDouble(Pair::p)).toList();
        Map<Pair, Double> corrected = new LinkedHashMap<>();
        double least = 0;
        for (int k = 0; k < ascending.size(); k++) {
            least = Math.max(least, Math.min(1, ascending.get(k).p() * (ascending.size() - k)));
            corrected.put(ascending.get(k), least);
        }
        return corrected;
    }

    private Verdict verdict(Pair pair, double p, double band) {
        double edge = Math.log1p(band);
        double effect = Math.log(pair.ratio().value());
        double low = Math.log(pair.ratio().low());
        double high = Math.log(pair.ratio().high());
        if (pair.restarts() < LEAST_RESTARTS) {
            return new Verdict(Verdict.Kind.UNDECIDED, LEAST_RESTARTS - pair.restarts());
        }
        if (low > -edge && high < edge) {
            return new Verdict(Verdict.Kind.EQUIVALENT, 0);
        }
        // an effect inside the band is no difference, however sure: with many pairs some extreme one always looks sure
        if (p < LEVEL && (low > 0 || high < 0) && Math.abs(effect) > edge) {
            boolean lower = effect < 0;
            boolean better = lower == (metric.better() == Metric.Better.LOWER);
            return new Verdict(better ? Verdict.Kind.BETTER : Verdict.Kind.WORSE, 0);
        }
        int more = more(pair.restarts(), Math.abs(effect), (high - low) / 2, edge);
        return new Verdict(
                Verdict.Kind.UNDECIDED,
                Math.abs(effect) > edge ? Math.max(more, moreToBeSure(pair, p / pair.p())) : more);
    }

    /** Until the t-test, corrected by the same factor, would be sure. */
    private static int moreToBeSure(Pair pair, double factor) {
        int more = 1;
        while (more < Verdict.MANY
                && factor
                                * pair.test()
                                        .times(1 + (double) more / pair.restarts())
                                        .p()
                        >= LEVEL) {
            more++;
        }
        return more;
    }

    /** The half width of an interval shrinks with the square root of the restarts; it must come to exclude 1 or, for a small effect, to fit the band. */
    private static int more(int restarts, double effect, double halfWidth, double edge) {
        double needed = effect > edge ? effect : edge - effect;
        if (!(needed > 0) || !Double.isFinite(halfWidth)) {
            return restarts;
        }
        double wanted = restarts * Math.pow(halfWidth / needed, 2);
        return (int) Math.clamp(Math.ceil(wanted) - restarts, 1, Verdict.MANY);
    }

    /**
     * How far a technology is from itself: its restarts split in two at random, again and again, and the halves compared. Halves are
     * noisier than wholes by √2, which is taken out. NaN where no technology has four restarts.
     */
    double noiseFloor(Iterable<Sample> samples) {
        SplittableRandom random = new SplittableRandom(seed);
        double[] differences = new double[0];
        for (Sample sample : samples) {
            int n = sample.count();
            if (n < 4) {
                continue;
            }
            double[] own = new double[SPLITS];
            double[] shuffled = sample.points().clone();
            for (int split = 0; split < SPLITS; split++) {
                for (int i = n - 1; i > 0; i--) {
                    int j = random.nextInt(i + 1);
                    double kept = shuffled[i];
                    shuffled[i] = shuffled[j];
                    shuffled[j] = kept;
                }
                double one = Sample.median(Arrays.copyOfRange(shuffled, 0, n / 2));
                double other = Sample.median(Arrays.copyOfRange(shuffled, n / 2, n));
                own[split] = Math.abs(Math.log(one / other)) / Math.sqrt(2);
            }
            int before = differences.length;
            differences = Arrays.copyOf(differences, before + SPLITS);
            System.arraycopy(own, 0, differences, before, SPLITS);
        }
        if (differences.length == 0) {
            return Double.NaN;
        }
        Arrays.sort(differences);
        return Math.expm1(Sample.quantile(differences, 0.95));
    }
}
