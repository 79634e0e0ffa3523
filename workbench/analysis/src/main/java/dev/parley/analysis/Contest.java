package dev.parley.analysis;

import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * All pairs of technologies in one situation and metric. Two differ only when the interval of their ratio excludes 1, a
 * bootstrap and a t-test are both sure after Holm's correction, and the effect is above the tie band and above the
 * noise floor of these two. They are equivalent only when two one-sided t-tests and the interval show that they differ
 * by less than the tie band, which is the same on a quiet machine and on a noisy one. Otherwise the comparison is
 * undecided. Why: docs/decisions/0020-equivalence-needs-a-test.md.
 */
final class Contest {
    /**
     * Two technologies within 5 % of each other serve an architect alike. Never widened: noise is no evidence that two
     * things are alike.
     */
    static final double TIE_BAND = 0.05;

    private static final double LEVEL = 0.05;

    private static final double BORDER = Math.log1p(TIE_BAND);

    private static final int SPLITS = 200;

    /**
     * So many draws beyond 1 tell how rare they are; fewer, and more are drawn where Holm's correction needs to know.
     */
    private static final int TAIL = 10;

    private final Metric metric;
    private final long seed;

    Contest(Metric metric, long seed) {
        this.metric = metric;
        this.seed = seed;
    }

    /**
     * The outcome for {@code first} held against {@code second}.
     *
     * @param restarts how many the ratio rests on: within blocks, those that both have
     */
    record Result(
            String first, String second, Estimate ratio, int restarts, double p, double noiseFloor, Verdict verdict) {}

    /** Two samples of one thing, such as a technology in two runs. */
    record Sides(Sample first, Sample second) {
        static final Sides NONE = new Sides(Sample.NONE, Sample.NONE);
    }

    /** Each thing's first side held against its own second; Holm's correction is over all of them. */
    <K> Map<K, Result> eachAgainstItself(Map<K, Sides> things) {
        Map<K, Pair> pairs = new LinkedHashMap<>();
        int drawsMost = drawsMost(things.size());
        things.forEach((thing, sides) -> {
            String name = thing.toString();
            pairs.put(thing, unpaired(name, sides, new SplittableRandom(seed ^ name.hashCode()), drawsMost));
        });
        Map<Pair, Double> corrected = holm(List.copyOf(pairs.values()));
        Map<K, Result> results = new LinkedHashMap<>();
        // each has a pair of its own: what is said of one says nothing of another
        pairs.forEach((thing, pair) -> results.put(thing, result(pair, corrected.getOrDefault(pair, 1.0), LEVEL)));
        return results;
    }

    /**
     * @param p before Holm's correction: the less sure of the bootstrap and of {@code test}
     * @param noiseFloor of these two; NaN where neither has the restarts for one
     * @param why no verdict can follow, however many restarts there are; empty as a rule
     */
    private record Pair(
            String first,
            String second,
            Estimate ratio,
            double p,
            int restarts,
            TTest test,
            double noiseFloor,
            String why) {}

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
        Map<Pair, Double> corrected = holm(pairs);
        // among k that are all held against each other one less than k suffices. Source: Lauzon and Caffo, The American
        // Statistician 2009
        double tieLevel = LEVEL / Math.max(1, names.size() - 1);
        return pairs.stream()
                .map(pair -> result(pair, corrected.getOrDefault(pair, 1.0), tieLevel))
                .toList();
    }

    private Result result(Pair pair, double p, double tieLevel) {
        return new Result(
                pair.first(),
                pair.second(),
                pair.ratio(),
                pair.restarts(),
                p,
                pair.noiseFloor(),
                verdict(pair, p, tieLevel));
    }

    /**
     * Among so many comparisons Holm's correction asks the surest for a p of {@link #LEVEL} / comparisons: draws enough
     * to see one.
     */
    private static int drawsMost(int comparisons) {
        return Math.max(Sample.DRAWS, (int) Math.ceil(2 * TAIL * comparisons / LEVEL));
    }

    /** The ratio of the medians: restarts of two runs are no blocks of one another. */
    private Pair unpaired(String name, Sides sides, SplittableRandom random, int drawsMost) {
        Sample first = sides.first();
        Sample second = sides.second();
        String why = Stream.of(first, second)
                .map(side -> tooFew(side.count(), side.tried()))
                .filter(few -> !few.isEmpty())
                .findFirst()
                .orElse("");
        return pair(
                name,
                name,
                sides,
                why,
                () -> new Draws(
                        () -> first.draw(random) / second.draw(random),
                        first.least() > second.most() || first.most() < second.least(),
                        drawsMost),
                first.median() / second.median(),
                Math.min(first.count(), second.count()),
                TTest.welch(first.points(), second.points()));
    }

    /**
     * The ratio is the median over restarts of the ratio within each: boots are interleaved in blocks, one a restart,
     * and a machine that grows slower slows both of a block.
     */
    private Pair pair(String a, String b, Map<String, Sample> samples, SplittableRandom random, int drawsMost) {
        Sides sides = new Sides(samples.getOrDefault(a, Sample.NONE), samples.getOrDefault(b, Sample.NONE));
        Sample paired = sides.first().over(sides.second(), random);
        return pair(
                a,
                b,
                sides,
                tooFew(paired.count(), paired.tried()),
                () -> new Draws(() -> paired.draw(random), paired.least() > 1 || paired.most() < 1, drawsMost),
                paired.median(),
                paired.count(),
                TTest.paired(paired.points()));
    }

    /**
     * Whether those that are left may speak for all: where half of the restarts or more were cold, void or failed, the
     * others are survivors, and what they survived may be what the comparison is about.
     *
     * @return empty where they may
     */
    static String tooFew(int counted, int tried) {
        return 2 * counted > tried ? "" : counted + " of " + tried + " restarts count, and more than half must";
    }

    /**
     * @param isOneSided no draw can be on the other side of 1: what more of them would find is known without drawing
     */
    private record Draws(DoubleSupplier ratio, boolean isOneSided, int most) {}

    /**
     * Draws until it is known how rare ratios on the other side of 1 are, after Besag and Clifford (Biometrika 1991). A
     * restart in which nothing was answered has no ratio, and without it the others are not all that was measured:
     * there is none at all then.
     */
    private Pair pair(
            String a,
            String b,
            Sides sides,
            String few,
            Supplier<Draws> draws,
            double ratio,
            int restarts,
            TTest test) {
        if (!few.isEmpty()) {
            return withoutRatio(a, b, restarts, few);
        }
        if (!sides.first().isPositive() || !sides.second().isPositive()) {
            return withoutRatio(a, b, restarts, "a restart without a figure above 0 has no ratio");
        }
        Draws from = draws.get();
        double[] ratios = new double[Sample.DRAWS];
        int drawn = 0;
        int under = 0;
        int over = 0;
        while (drawn < Sample.DRAWS || !from.isOneSided() && drawn < from.most() && Math.min(under, over) < TAIL) {
            double one = from.ratio().getAsDouble();
            under += one <= 1 ? 1 : 0;
            over += one >= 1 ? 1 : 0;
            if (drawn == ratios.length) {
                ratios = Arrays.copyOf(ratios, Math.min(2 * drawn, from.most()));
            }
            ratios[drawn++] = one;
        }
        ratios = Arrays.copyOf(ratios, drawn);
        Arrays.sort(ratios);
        double p = Math.min(1, 2.0 * (Math.min(under, over) + 1) / ((from.isOneSided() ? from.most() : drawn) + 1));
        Estimate estimate = new Estimate(
                ratio,
                Math.min(ratio, Sample.quantile(ratios, 0.025)),
                Math.max(ratio, Sample.quantile(ratios, 0.975)));
        if (!(estimate.low() > 0) || !Double.isFinite(estimate.high())) {
            return withoutRatio(a, b, restarts, "a ratio whose interval reaches 0 or has no end");
        }
        return new Pair(a, b, estimate, Math.max(p, test.p()), restarts, test, noiseFloor(sides), "");
    }

    private static Pair withoutRatio(String a, String b, int restarts, String why) {
        return new Pair(a, b, Estimate.NONE, 1, restarts, TTest.NONE, Double.NaN, why);
    }

    /** Holm (1979): the k-th smallest of m p-values times m − k + 1, never smaller than the one before. */
    private static Map<Pair, Double> holm(List<Pair> pairs) {
        List<Pair> ascending =
                pairs.stream().sorted(Comparator.comparingDouble(Pair::p)).toList();
        // by identity: two pairs may be equal in all that they hold
        Map<Pair, Double> corrected = new IdentityHashMap<>();
        double least = 0;
        for (int k = 0; k < ascending.size(); k++) {
            least = Math.max(least, Math.min(1, ascending.get(k).p() * (ascending.size() - k)));
            corrected.put(ascending.get(k), least);
        }
        return corrected;
    }

    private Verdict verdict(Pair pair, double p, double tieLevel) {
        if (!pair.why().isEmpty()) {
            return Verdict.undecided(pair.why());
        }
        if (pair.restarts() < Validity.MIN_VERDICT_RESTARTS) {
            return new Verdict(Verdict.Kind.UNDECIDED, Validity.MIN_VERDICT_RESTARTS - pair.restarts());
        }
        double effect = Math.log(pair.ratio().value());
        double low = Math.log(pair.ratio().low());
        double high = Math.log(pair.ratio().high());
        if (low > -BORDER && high < BORDER && pair.test().pBeyond(BORDER) < tieLevel) {
            return new Verdict(Verdict.Kind.EQUIVALENT, 0);
        }
        // an effect inside the band is no difference, however sure: with many pairs some extreme one always looks sure
        double floor = Double.isNaN(pair.noiseFloor()) ? 0 : Math.log1p(pair.noiseFloor());
        if (p < LEVEL && (low > 0 || high < 0) && Math.abs(effect) > Math.max(BORDER, floor)) {
            boolean lower = effect < 0;
            boolean better = lower == (metric.better() == Metric.Better.LOWER);
            return new Verdict(better ? Verdict.Kind.BETTER : Verdict.Kind.WORSE, 0);
        }
        Aim aim = new Aim(Math.abs(effect), (high - low) / 2, floor, p / pair.p(), tieLevel);
        return new Verdict(Verdict.Kind.UNDECIDED, more(pair, aim));
    }

    /**
     * What an undecided comparison has, and what it would take; ratios as logarithms.
     *
     * @param factor of Holm's correction
     */
    private record Aim(double effect, double halfWidth, double floor, double factor, double tieLevel) {
        /** The half width of an interval and the noise floor shrink with the square root of the restarts. */
        boolean isReached(TTest then, double times) {
            double half = halfWidth / Math.sqrt(times);
            boolean isTold =
                    effect > Math.max(BORDER, floor / Math.sqrt(times)) && half < effect && factor * then.p() < LEVEL;
            boolean isTie = effect + half < BORDER && then.pBeyond(BORDER) < tieLevel;
            return isTold || isTie;
        }
    }

    /** The number of restarts after which a verdict would follow, if they went as these did. */
    private static int more(Pair pair, Aim aim) {
        for (int more = 1; more < Verdict.MANY; more++) {
            double times = 1 + (double) more / pair.restarts();
            if (aim.isReached(pair.test().times(times), times)) {
                return more;
            }
        }
        return Verdict.MANY;
    }

    /**
     * How far the two are from themselves: the restarts of each split in two at random, again and again, and the halves
     * compared. Halves are noisier than wholes by √2, which is taken out. NaN where neither has four restarts.
     */
    private double noiseFloor(Sides sides) {
        SplittableRandom random = new SplittableRandom(seed);
        double[] differences = new double[0];
        for (Sample sample : List.of(sides.first(), sides.second())) {
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
