package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ContestTest {
    private static final Contest LATENCY = new Contest(Metric.LATENCY_MEDIAN, 7);

    /** Restarts differ by 2 %, seconds within a restart by 4 %, as on a quiet machine. */
    static Sample synthetic(SplittableRandom random, double typical, int restarts, double restartSpread) {
        double[] points = new double[restarts];
        List<double[]> pools = new ArrayList<>();
        for (int r = 0; r < restarts; r++) {
            double mood = typical * (1 + restartSpread * random.nextGaussian());
            double[] pool = new double[Sample.POOL];
            for (int i = 0; i < pool.length; i++) {
                pool[i] = mood * (1 + 0.04 / Math.sqrt(30) * random.nextGaussian());
            }
            points[r] = mood;
            pools.add(pool);
        }
        return Sample.ofPoints(points).redrawn(pools);
    }

    private static Verdict verdict(Contest contest, Sample first, Sample second) {
        return contest.of(inOrder(first, second)).getFirst().verdict();
    }

    private static Map<String, Sample> inOrder(Sample... samples) {
        Map<String, Sample> map = new LinkedHashMap<>();
        for (Sample sample : samples) {
            map.put("t" + map.size(), sample);
        }
        return map;
    }

    @Test
    void aTechnologyAgainstItselfIsEquivalentInAtLeast95Of100() {
        SplittableRandom random = new SplittableRandom(20261121);
        int equivalent = 0;
        for (int i = 0; i < 100; i++) {
            Verdict verdict = verdict(
                    new Contest(Metric.LATENCY_MEDIAN, i),
                    synthetic(random, 10, 10, 0.02),
                    synthetic(random, 10, 10, 0.02));
            equivalent += verdict.kind() == Kind.EQUIVALENT ? 1 : 0;
            assertThat(verdict.kind()).isIn(Kind.EQUIVALENT, Kind.UNDECIDED);
        }
        assertThat(equivalent).isGreaterThanOrEqualTo(95);
    }

    @Test
    void aPlantedDelayOfTwentyPercentIsWorse() {
        SplittableRandom random = new SplittableRandom(5);
        for (int i = 0; i < 100; i++) {
            Verdict verdict = verdict(LATENCY, synthetic(random, 12, 10, 0.02), synthetic(random, 10, 10, 0.02));
            assertThat(verdict.kind()).isEqualTo(Kind.WORSE);
        }
    }

    @Test
    void moreIsBetterForThroughput() {
        SplittableRandom random = new SplittableRandom(6);
        Verdict verdict = verdict(
                new Contest(Metric.THROUGHPUT, 1),
                synthetic(random, 1200, 10, 0.02),
                synthetic(random, 1000, 10, 0.02));
        assertThat(verdict.kind()).isEqualTo(Kind.BETTER);
    }

    @Test
    void aNoisyDifferenceIsUndecidedAndSaysHowManyRestartsMore() {
        SplittableRandom random = new SplittableRandom(8);
        Verdict verdict = verdict(LATENCY, synthetic(random, 11, 5, 0.15), synthetic(random, 10, 5, 0.15));
        assertThat(verdict.kind()).isEqualTo(Kind.UNDECIDED);
        assertThat(verdict.moreRestarts()).isPositive();
        assertThat(verdict).hasToString("undecided (" + verdict.moreRestarts() + " more restarts)");
        assertThat(new Verdict(Kind.UNDECIDED, 1)).hasToString("undecided (1 more restart)");
        assertThat(new Verdict(Kind.UNDECIDED, Verdict.MANY)).hasToString("undecided (1000 or more restarts)");
    }

    @Test
    void underThreeRestartsNothingIsDecided() {
        Verdict verdict = verdict(LATENCY, Sample.ofPoints(10, 10.1), Sample.ofPoints(20, 20.1));
        assertThat(verdict).isEqualTo(new Verdict(Kind.UNDECIDED, 1));
    }

    /**
     * Three restarts are what a quick run has: a bootstrap over them alone told some two apart in 93 of 100 such
     * contests.
     */
    @ParameterizedTest
    @ValueSource(ints = {3, 5, 10})
    void eightEqualTechnologiesAreToldApartInAtMostOneOfTwentyContests(int restarts) {
        SplittableRandom random = new SplittableRandom(9);
        int toldApart = 0;
        for (int contest = 0; contest < 40; contest++) {
            Sample[] many = new Sample[8];
            for (int i = 0; i < many.length; i++) {
                many[i] = synthetic(random, 10, restarts, 0.1);
            }
            List<Contest.Result> results = new Contest(Metric.LATENCY_MEDIAN, contest).of(inOrder(many));
            assertThat(results).hasSize(28);
            toldApart += results.stream()
                            .anyMatch(r -> r.verdict().kind() == Kind.BETTER
                                    || r.verdict().kind() == Kind.WORSE)
                    ? 1
                    : 0;
        }
        assertThat(toldApart).isLessThanOrEqualTo(2);
    }

    @Test
    void threeRestartsTellApartWhatIsFarApart() {
        SplittableRandom random = new SplittableRandom(15);
        assertThat(verdict(LATENCY, synthetic(random, 20, 3, 0.05), synthetic(random, 10, 3, 0.05))
                        .kind())
                .isEqualTo(Kind.WORSE);
        // all on one side, and yet p is 0.07 by the t-test
        assertThat(verdict(LATENCY, Sample.ofPoints(10.4, 10.8, 11.3), Sample.ofPoints(10, 10, 10)))
                .isEqualTo(new Verdict(Kind.UNDECIDED, 1));
    }

    @Test
    void holmAsksMoreOfManyPairsThanOfOne() {
        SplittableRandom random = new SplittableRandom(12);
        Sample a = synthetic(random, 10.4, 10, 0.03);
        Sample b = synthetic(random, 10, 10, 0.03);
        double alone = LATENCY.of(inOrder(a, b)).getFirst().p();
        double among = LATENCY.of(inOrder(a, b, synthetic(random, 10, 10, 0.03), synthetic(random, 10, 10, 0.03)))
                .getFirst()
                .p();
        assertThat(among).isGreaterThan(alone);
    }

    @Test
    void amongManyTechnologiesEachIsStillToldFromTheOthers() {
        SplittableRandom random = new SplittableRandom(13);
        Sample[] many = new Sample[20];
        for (int i = 0; i < many.length; i++) {
            many[i] = synthetic(random, Math.pow(1.5, i), 10, 0.03);
        }
        assertThat(LATENCY.of(inOrder(many)))
                .hasSize(190)
                .allMatch(r -> r.verdict().kind() == Kind.BETTER);
    }

    @Test
    void aRunOfManyRowsThatAllGrewSlowerIsWorseInEachRow() {
        SplittableRandom random = new SplittableRandom(14);
        Map<String, Contest.Sides> rows = new LinkedHashMap<>();
        for (int i = 0; i < 100; i++) {
            // one in four has no draw in common with its baseline
            double spread = i % 4 == 0 ? 0.02 : 0.12;
            rows.put(
                    "row" + i, new Contest.Sides(synthetic(random, 14, 20, spread), synthetic(random, 10, 20, spread)));
        }
        assertThat(LATENCY.eachAgainstItself(rows).values())
                .hasSize(100)
                .allMatch(r -> r.verdict().kind() == Kind.WORSE);
    }

    @Test
    void aNoisyTechnologyMakesNoOthersEquivalent() {
        SplittableRandom random = new SplittableRandom(21);
        Sample noisy = synthetic(random, 10, 10, 0.5);
        Sample slow = synthetic(random, 11.5, 10, 0.02);
        Sample fast = synthetic(random, 10, 10, 0.02);
        assertThat(LATENCY.of(inOrder(slow, fast, noisy)).getFirst())
                .satisfies(r -> assertThat(r.verdict().kind()).isEqualTo(Kind.WORSE))
                .satisfies(r -> assertThat(r.noiseFloor()).isLessThan(0.05));
    }

    @Test
    void aRestartWithoutAnAnswerIsNoVerdictAndTouchesNoOthers() {
        Sample silent = Sample.ofPoints(100, 0, 101, 99, 100);
        Sample some = Sample.ofPoints(50, 51, 49, 50, 50.5);
        Sample more = Sample.ofPoints(70, 71, 69, 70, 70.5);
        List<Contest.Result> results = new Contest(Metric.THROUGHPUT, 3).of(inOrder(silent, some, more));
        assertThat(results.subList(0, 2)).allSatisfy(r -> {
            assertThat(r.verdict().kind()).isEqualTo(Kind.UNDECIDED);
            assertThat(r.verdict()).hasToString("undecided (a restart without a figure above 0 has no ratio)");
            assertThat(r.ratio().isPresent()).isFalse();
        });
        assertThat(results.get(2).verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(results.get(2).noiseFloor()).isFinite();
    }

    @Test
    void aRatioWithoutAnEndIsNoVerdict() {
        List<double[]> pools = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            pools.add(new double[] {0, 10});
        }
        Sample halting = Sample.ofPoints(10, 10, 10, 10, 10).redrawn(pools);
        assertThat(verdict(LATENCY, Sample.ofPoints(30, 30, 30, 30, 30), halting))
                .hasToString("undecided (a ratio whose interval reaches 0 or has no end)");
    }

    @Test
    void halfOfTheRestartsAreSurvivorsAndDecideNothing() {
        Sample three = Sample.ofPoints(10, 10.1, 9.9);
        Sample all = Sample.ofPoints(20, 20.1, 19.9, 20, 20);
        assertThat(verdict(LATENCY, three.ofTried(5), all).kind()).isEqualTo(Kind.BETTER);
        assertThat(verdict(LATENCY, three.ofTried(6), all.ofTried(6)))
                .isEqualTo(Verdict.undecided("3 of 6 restarts count, and more than half must"));
        Contest.Sides sides = new Contest.Sides(three.ofTried(6), all);
        assertThat(LATENCY.eachAgainstItself(Map.of("row", sides)).values())
                .singleElement()
                .satisfies(
                        r -> assertThat(r.verdict().why()).isEqualTo("3 of 6 restarts count, and more than half must"));
    }

    /** Each side kept three of five, and only one restart is common to both. */
    @Test
    void whatNoRestartHasInCommonIsNotHeldAgainstEachOther() {
        Sample early =
                Sample.of(new TreeMap<>(Map.of(1, 10.0, 2, 10.1, 3, 9.9))).ofTried(5);
        Sample late =
                Sample.of(new TreeMap<>(Map.of(3, 20.0, 4, 20.1, 5, 19.9))).ofTried(5);
        assertThat(verdict(LATENCY, early, late))
                .isEqualTo(Verdict.undecided("1 of 5 restarts count, and more than half must"));
    }

    /** What is said of one pair alone must be surer among many, of which some lie within the band by chance. */
    @Test
    void amongManyTechnologiesATieMustBeSurer() {
        Sample[] many = new Sample[12];
        for (int i = 0; i < many.length; i++) {
            double typical = i < 2 ? 10 : 10 * Math.pow(3, i);
            many[i] = Sample.ofPoints(
                    typical * (i == 0 ? 1.03 : 1), typical, typical, typical, typical * (i == 0 ? 0.96 : 1));
        }
        assertThat(verdict(LATENCY, many[0], many[1]).kind()).isEqualTo(Kind.EQUIVALENT);
        Verdict among = LATENCY.of(inOrder(many)).getFirst().verdict();
        assertThat(among.kind()).isEqualTo(Kind.UNDECIDED);
        assertThat(among.moreRestarts()).isBetween(1, 5);
    }

    @Test
    void theIntervalOfAMedianHoldsTheTruthInMostCases() {
        SplittableRandom random = new SplittableRandom(11);
        int held = 0;
        for (int i = 0; i < 200; i++) {
            Estimate e = Estimate.of(synthetic(random, 10, 10, 0.05), i);
            held += e.low() <= 10 && 10 <= e.high() ? 1 : 0;
        }
        assertThat(held).isBetween(175, 200);
    }

    @Test
    void aRestartInWhichNothingWasAnsweredShowsInTheShareThatWas() {
        Sample share = Sample.ofPoints(100, 0, 100);
        assertThat(Estimate.of(Metric.SUCCESS_SHARE, share, 1).value()).isEqualTo(200 / 3.0);
        Estimate ofTen = Estimate.of(Metric.SUCCESS_SHARE, Sample.ofPoints(90, 90, 90, 90, 90, 90, 90, 90, 90, 0), 1);
        assertThat(ofTen.low())
                .as("the interval of a mean, which medians of draws would hide")
                .isLessThan(80);
        assertThat(Estimate.of(Metric.THROUGHPUT, share, 1).value()).isEqualTo(100);
    }
}
