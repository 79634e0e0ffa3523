package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.analysis.Contest.Result;
import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.apache.commons.statistics.distribution.TDistribution;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Contests small enough for their figures to be worked out beside them. */
class ContestArithmeticTest {
    private static final Contest LATENCY = new Contest(Metric.LATENCY_MEDIAN, 7);

    private static List<Result> contest(Sample... samples) {
        Map<String, Sample> byName = new LinkedHashMap<>();
        for (Sample sample : samples) {
            byName.put("t" + byName.size(), sample);
        }
        return LATENCY.of(byName);
    }

    private static Result pair(Sample first, Sample second) {
        return contest(first, second).getFirst();
    }

    private static Sample same(int restarts, double value) {
        double[] points = new double[restarts];
        Arrays.fill(points, value);
        return Sample.ofPoints(points);
    }

    /** Points that were all the same, and seconds that say {@code values} of each. */
    private static Sample lumpy(int restarts, double point, double... values) {
        return same(restarts, point).redrawn(Collections.nCopies(restarts, values));
    }

    private static Sample times(Sample sample, double factor) {
        return Sample.ofPoints(
                Arrays.stream(sample.points()).map(p -> p * factor).toArray());
    }

    /** Restarts that always differ by the same leave the t-test no doubt: what is left is what 2,000 draws can show. */
    @ParameterizedTest
    @CsvSource({"2, 1, 2000", "5, 10, 4000", "8, 28, 11200", "20, 190, 76000"})
    void pIsThatOfAsManyDrawsAsHolmNeeds(int technologies, int pairs, int draws) {
        Sample[] all =
                IntStream.range(0, technologies).mapToObj(i -> same(3, 1 + i)).toArray(Sample[]::new);
        assertThat(contest(all)).hasSize(pairs).allSatisfy(result -> {
            assertThat(result.p()).isEqualTo(pairs * 2.0 / (draws + 1), within(1e-12));
            assertThat(result.verdict().kind()).isEqualTo(Kind.BETTER);
        });
    }

    @Test
    void theRatioIsTheMedianOfRatiosAndSoIsItsInterval() {
        Result result = pair(Sample.ofPoints(10, 40, 90), Sample.ofPoints(5, 10, 30));
        assertThat(result.ratio()).isEqualTo(new Estimate(3, 2, 4));
        assertThat(result.first()).isEqualTo("t0");
        assertThat(result.second()).isEqualTo("t1");
    }

    @Test
    void theIntervalHoldsWhatWasMeasuredHoweverItsSecondsFall() {
        assertThat(pair(lumpy(3, 30, 20), same(3, 10)).ratio()).isEqualTo(new Estimate(3, 2, 3));
        assertThat(pair(lumpy(3, 30, 40), same(3, 10)).ratio()).isEqualTo(new Estimate(3, 3, 4));
    }

    /** Of three p-values the smallest is threefold, the next twofold, and none is under the one before. */
    @Test
    void holmIsWorkedOut() {
        Sample a = Sample.ofPoints(10, 10.4, 9.7);
        Sample b = Sample.ofPoints(13, 15.6, 13.3);
        Sample c = Sample.ofPoints(19, 24, 27);
        List<Sample[]> pairs = List.of(new Sample[] {a, b}, new Sample[] {a, c}, new Sample[] {b, c});
        double[] plain = pairs.stream()
                .mapToDouble(two -> TTest.paired(IntStream.range(0, 3)
                                .mapToDouble(i -> two[0].points()[i] / two[1].points()[i])
                                .toArray())
                        .p())
                .toArray();
        assertThat(Arrays.stream(plain).min().orElseThrow())
                .as("none is surer than the bootstrap")
                .isGreaterThan(2.0 / 2001);
        double[] ascending = plain.clone();
        Arrays.sort(ascending);
        double least = ascending[0] * 3;
        double next = Math.max(least, ascending[1] * 2);
        double last = Math.max(next, ascending[2]);
        double[] corrected = {least, next, last};
        List<Result> results = contest(a, b, c);
        for (int i = 0; i < 3; i++) {
            int rank = Arrays.binarySearch(ascending, plain[i]);
            assertThat(results.get(i).p()).isCloseTo(corrected[rank], within(1e-12));
        }
    }

    @Test
    void pIsNeverAboveOne() {
        Sample[] alike = IntStream.range(0, 4)
                .mapToObj(i -> Sample.ofPoints(10, 10 + 0.01 * i, 10 - 0.01 * i))
                .toArray(Sample[]::new);
        assertThat(contest(alike)).hasSize(6).allSatisfy(r -> assertThat(r.p()).isBetween(0.0, 1.0));
        assertThat(contest(alike)).anySatisfy(r -> assertThat(r.p()).isEqualTo(1));
    }

    /** The median of five drawn is at most the lowest with a chance of 0.0579 where one of five is that low. */
    @ParameterizedTest
    @CsvSource({"0.9, 1.2", "1, 1.2", "1.1, 0.8", "1, 0.8"})
    void theBootstrapsPIsTwiceTheShareOnTheRarerSide(double one, double four) {
        Sample ratios = Sample.ofPoints(four, four, one, four, four);
        Result result = pair(ratios, same(5, 1));
        assertThat(TTest.paired(ratios.points()).p()).as("the surer of the two").isLessThan(0.1);
        assertThat(result.p()).isBetween(0.09, 0.16);
    }

    /** Redrawn seconds reach the other side of 1 once in some thousand draws: more are made until it has been seen. */
    @Test
    void whatIsRareIsDrawnForUntilItHasBeenSeen() {
        Map<String, Contest.Sides> rows = new LinkedHashMap<>();
        double[] second = new double[100];
        Arrays.fill(second, 12);
        second[0] = 9;
        for (int i = 0; i < 60; i++) {
            rows.put("row" + i, new Contest.Sides(lumpy(3, 12, second), same(3, 10)));
        }
        // two of three have to be low: 3 × 0.01² × 0.99 + 0.01³; among sixty, 24,000 draws are allowed
        double chance = 3 * 1e-4 * 0.99 + 1e-6;
        List<Double> ps =
                LATENCY.eachAgainstItself(rows).values().stream().map(Result::p).toList();
        assertThat(ps).hasSize(60);
        assertThat(ps.stream().mapToDouble(p -> p).min().orElseThrow())
                .as("the least, sixtyfold")
                .isBetween(60 * 2 * chance * 0.2, 60 * 2 * chance * 1.2);
    }

    /** Half of the splits in two of a, a, b, b are a, b against a, b, and a third is a, a against b, b. */
    @Test
    void theNoiseFloorIsThatOfTheHalvesOfEachOfTheTwo() {
        double b = 10 * Math.exp(0.1);
        Sample two = Sample.ofPoints(10, b, 10, b);
        double floor = Math.expm1(0.1 / Math.sqrt(2));
        assertThat(pair(two, times(two, 3)).noiseFloor()).isCloseTo(floor, within(1e-9));
        assertThat(pair(two, same(4, 3)).noiseFloor())
                .as("of one that differs and one that does not")
                .isCloseTo(floor, within(1e-9));
        assertThat(pair(same(4, 3), two).noiseFloor()).isCloseTo(floor, within(1e-9));
        assertThat(pair(same(4, 3), same(4, 5)).noiseFloor()).isZero();
        assertThat(pair(Sample.ofPoints(10, b, 10), Sample.ofPoints(10, b, 10)).noiseFloor())
                .as("three restarts have no halves")
                .isNaN();
        // of five, two against three: a, a against the middle of a, b, b, and the other way round
        assertThat(pair(Sample.ofPoints(10, b, 10, b, 10), same(5, 3)).noiseFloor())
                .isCloseTo(floor, within(1e-9));
    }

    @Test
    void whatIsSureAndUnderTheNoiseFloorIsUndecidedUntilTheFloorHasSunk() {
        Sample moods = Sample.ofPoints(10, 14, 10, 14, 10, 14);
        Result result = pair(times(moods, 1.1), moods);
        double floor = Math.log1p(result.noiseFloor());
        assertThat(floor).isGreaterThan(Math.log(1.1));
        assertThat(result.verdict())
                .isEqualTo(new Verdict(
                        Kind.UNDECIDED, restartsUntil(6, times -> floor / Math.sqrt(times) < Math.log(1.1))));
        assertThat(pair(times(moods, 2), moods).verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(pair(times(moods, 0.5), moods).verdict().kind()).isEqualTo(Kind.BETTER);
    }

    /** What restarts agree on and their seconds do not: the interval has to shrink to one side of 1, or into the band. */
    @Test
    void whatOnlyTheIntervalLeavesOpenIsDecidedOnceItHasShrunk() {
        Result apart = pair(lumpy(4, 12, 6, 24), same(4, 10));
        double half = Math.log(apart.ratio().high() / apart.ratio().low()) / 2;
        assertThat(apart.ratio()).isEqualTo(new Estimate(1.2, 0.6, 2.4));
        assertThat(apart.verdict())
                .isEqualTo(new Verdict(
                        Kind.UNDECIDED, restartsUntil(4, times -> half / Math.sqrt(times) < Math.log(1.2))));
        Result alike = pair(lumpy(4, 10.1, 9, 11), same(4, 10));
        double less = Math.log(alike.ratio().high() / alike.ratio().low()) / 2;
        assertThat(alike.verdict())
                .isEqualTo(new Verdict(
                        Kind.UNDECIDED,
                        restartsUntil(
                                4,
                                times -> Math.log(1.01) + less / Math.sqrt(times) < Math.log(Contest.TIE_BAND + 1))));
    }

    /** One side of the interval within the band is not enough, whichever it is. */
    @Test
    void bothEndsOfTheIntervalLieWithinTheBandOrItIsNoTie() {
        assertThat(pair(lumpy(4, 10, 9, 10.1), same(4, 10)).verdict().kind()).isEqualTo(Kind.UNDECIDED);
        assertThat(pair(lumpy(4, 10, 9.9, 11), same(4, 10)).verdict().kind()).isEqualTo(Kind.UNDECIDED);
        assertThat(pair(lumpy(4, 10, 9.9, 10.1), same(4, 10)).verdict().kind()).isEqualTo(Kind.EQUIVALENT);
    }

    /** An interval of 1.1 to 2.4 lies on one side of 1, and one of 0.9 to 2.4 does not; the same below 1. */
    @Test
    void theIntervalOfWhatIsToldApartExcludesOne() {
        assertThat(pair(lumpy(4, 12, 11, 24), same(4, 10)).verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(pair(lumpy(4, 12, 9, 24), same(4, 10)).verdict().kind()).isEqualTo(Kind.UNDECIDED);
        assertThat(pair(lumpy(4, 8, 5, 9), same(4, 10)).verdict().kind()).isEqualTo(Kind.BETTER);
        assertThat(pair(lumpy(4, 8, 5, 11), same(4, 10)).verdict().kind()).isEqualTo(Kind.UNDECIDED);
    }

    /** Sure, and within the band or beyond it by a hair. */
    @Test
    void whatLiesWithinTheBandIsNoDifferenceHoweverSureItIs() {
        assertThat(pair(same(5, 10.49), same(5, 10)).verdict().kind()).isEqualTo(Kind.EQUIVALENT);
        assertThat(pair(same(5, 10.51), same(5, 10)).verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(pair(same(5, 10), same(5, 10.49)).verdict().kind()).isEqualTo(Kind.EQUIVALENT);
        assertThat(pair(same(5, 10), same(5, 10.51)).verdict().kind()).isEqualTo(Kind.BETTER);
    }

    @Test
    void threeRestartsAreEnoughAndTwoAreNot() {
        assertThat(pair(same(3, 20), same(3, 10)).verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(pair(same(2, 20), same(2, 10)).verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, 1));
        assertThat(pair(same(1, 20), same(1, 10)).verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, 2));
    }

    /** Restarts that scatter as these do: how many more it takes, told by Student's distribution here. */
    @Test
    void theNumberOfRestartsThatWouldDecideIsWorkedOut() {
        double[] logs = {0.01, 0.05, 0.3, 0.08, 0.25};
        Sample first =
                Sample.ofPoints(DoubleStream.of(logs).map(l -> 10 * Math.exp(l)).toArray());
        Result result = pair(first, same(5, 10));
        double mean = DoubleStream.of(logs).average().orElseThrow();
        double error = Math.sqrt(
                DoubleStream.of(logs).map(l -> (l - mean) * (l - mean)).sum() / 4 / 5);
        assertThat(result.p()).isCloseTo(p(mean / error, 4), within(1e-9)).isGreaterThan(0.05);
        double effect = Math.log(result.ratio().value());
        double half = Math.log(result.ratio().high() / result.ratio().low()) / 2;
        double floor = Math.log1p(result.noiseFloor());
        int expected = restartsUntil(
                5,
                times -> half / Math.sqrt(times) < effect
                        && floor / Math.sqrt(times) < effect
                        && p(mean / error * Math.sqrt(times), 5 * times - 1) < 0.05);
        assertThat(expected).isGreaterThan(0);
        assertThat(result.verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, expected));
    }

    private static double p(double t, double freedom) {
        return 2 * TDistribution.of(freedom).survivalProbability(t);
    }

    /** A hair within the band: no number of restarts tells these two apart, nor shows that they are alike. */
    @Test
    void whatNoNumberOfRestartsDecidesSaysSo() {
        Sample first = Sample.ofPoints(10.4, 10.6, 10.4999, 10.4999, 10.4999);
        assertThat(pair(first, same(5, 10)).verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, Verdict.MANY));
    }

    private interface Reached {
        boolean with(double times);
    }

    private static int restartsUntil(int restarts, Reached reached) {
        return IntStream.range(1, Verdict.MANY)
                .filter(more -> reached.with((restarts + more) / (double) restarts))
                .findFirst()
                .orElse(Verdict.MANY);
    }

    private static Result the(Map<String, Result> results, String row) {
        return Objects.requireNonNull(results.get(row));
    }

    @Test
    void twoRunsAreHeldAgainstEachOtherByTheirMedians() {
        Map<String, Contest.Sides> rows = new LinkedHashMap<>();
        rows.put("slower", new Contest.Sides(Sample.ofPoints(20, 22, 26), Sample.ofPoints(11, 9, 10, 10.5)));
        rows.put("faster", new Contest.Sides(same(3, 5), same(4, 10)));
        rows.put("touching", new Contest.Sides(Sample.ofPoints(10, 10, 10), Sample.ofPoints(10, 10, 10)));
        rows.put("short", new Contest.Sides(same(2, 5), same(4, 10)));
        rows.put("lost", new Contest.Sides(same(3, 5), same(3, 10).ofTried(6)));
        rows.put("none", Contest.Sides.NONE);
        Map<String, Result> results = LATENCY.eachAgainstItself(rows);
        assertThat(results).containsOnlyKeys(rows.keySet());
        Result slower = the(results, "slower");
        assertThat(slower.first()).isEqualTo("slower");
        assertThat(slower.second()).isEqualTo("slower");
        assertThat(slower.ratio().value()).isEqualTo(22 / 10.25);
        assertThat(slower.ratio().low()).isBetween(20 / 11.0, 22 / 10.25);
        assertThat(slower.ratio().high()).isBetween(22 / 10.25, 26 / 9.0);
        assertThat(slower.verdict().kind()).isEqualTo(Kind.WORSE);
        assertThat(the(results, "faster").verdict().kind()).isEqualTo(Kind.BETTER);
        // six rows, of which the surest counts sixfold
        assertThat(the(results, "faster").p()).isCloseTo(6 * 2.0 / (2_400 + 1), within(1e-12));
        assertThat(the(results, "touching").verdict().kind()).isEqualTo(Kind.EQUIVALENT);
        assertThat(the(results, "touching").p()).isEqualTo(1);
        assertThat(the(results, "short").verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, 1));
        assertThat(the(results, "lost").verdict())
                .isEqualTo(Verdict.undecided("3 of 6 restarts count, and more than half must"));
        assertThat(the(results, "none").verdict())
                .isEqualTo(Verdict.undecided("0 of 0 restarts count, and more than half must"));
    }

    @Test
    void aPairWithoutARatioHasNoFigureAtAll() {
        Result none = pair(same(3, 5).ofTried(6), same(3, 10));
        assertThat(none.ratio().isPresent()).isFalse();
        assertThat(none.p()).isEqualTo(1);
        assertThat(none.noiseFloor()).isNaN();
        List<double[]> down = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            down.add(new double[] {0, 10});
        }
        assertThat(pair(same(3, 10).redrawn(down), same(3, 10)).verdict())
                .isEqualTo(Verdict.undecided("a ratio whose interval reaches 0 or has no end"));
        assertThat(pair(same(3, 10), Sample.ofPoints(10, 0, 10)).verdict())
                .isEqualTo(Verdict.undecided("a restart without a figure above 0 has no ratio"));
    }

    /** Ten restarts, of which one is 15 % above and one as far below: the two one-sided tests have p = 0.029. */
    @Test
    void amongThreeTechnologiesATieIsTwiceAsHardToShow() {
        double[] ratios = {1, 1, 1, 1, 1, 1, 1, 1, Math.exp(0.15), Math.exp(-0.15)};
        assertThat(TTest.paired(ratios).pBeyond(Math.log(1.05))).isBetween(0.026, 0.03);
        Sample first = times(Sample.ofPoints(ratios), 10);
        assertThat(pair(first, same(10, 10)).verdict().kind()).isEqualTo(Kind.EQUIVALENT);
        assertThat(contest(first, same(10, 10), same(10, 30))
                        .getFirst()
                        .verdict()
                        .kind())
                .isEqualTo(Kind.UNDECIDED);
    }

    /** Ratios of which the least is 1 itself are on both sides of it, however many draws there may be. */
    @ParameterizedTest
    @CsvSource({"1.2", "0.8"})
    void whatTouchesOneIsNotOnOneSideOfIt(double others) {
        Sample touching = Sample.ofPoints(10 * others, 10 * others, 10, 10 * others, 10 * others);
        Sample[] all = new Sample[8];
        for (int i = 0; i < all.length; i++) {
            all[i] = i == 0 ? touching : same(5, i == 1 ? 10 : 1_000 * i);
        }
        assertThat(contest(all).getFirst().p()).isBetween(0.09, 0.16);
        Map<String, Contest.Sides> rows = new LinkedHashMap<>();
        rows.put("touching", new Contest.Sides(touching, same(5, 10)));
        for (int i = 0; i < 27; i++) {
            rows.put("row" + i, new Contest.Sides(same(5, 30), same(5, 10)));
        }
        assertThat(the(LATENCY.eachAgainstItself(rows), "touching").p()).isBetween(0.09, 0.16);
    }

    /** Logarithms 0.06, 0.2 and 0.34: p is 0.13 now, 0.065 with one restart more and 0.033 with two. */
    @Test
    void whatOnlyTheTestLeavesOpenIsDecidedOnceItIsSure() {
        Sample first = Sample.ofPoints(10 * Math.exp(0.06), 10 * Math.exp(0.2), 10 * Math.exp(0.34));
        assertThat(pair(first, same(3, 10)).verdict()).isEqualTo(new Verdict(Kind.UNDECIDED, 2));
    }
}
