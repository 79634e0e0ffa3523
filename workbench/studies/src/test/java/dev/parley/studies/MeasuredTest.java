package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.studies.Judgement.Verdict;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MeasuredTest {
    /** In the long form as many as docs/studies.md tells of: {@code -Dparley.long=true}. */
    private static final int CLAIMS = Boolean.getBoolean("parley.long") ? 5_000 : 300;

    /** Five per cent is nominal; so much more is what chance makes of it in one case of a thousand. */
    private static final double MAX = 0.05 + 3.1 * Math.sqrt(0.05 * 0.95 / CLAIMS);

    private static Measured of(Map<Integer, Double> values, int tried) {
        Map<Integer, Measured.Restart> byRestart = new TreeMap<>();
        values.forEach((restart, value) -> byRestart.put(restart, new Measured.Restart(value, new double[] {value})));
        return Measured.of(byRestart, tried, false);
    }

    private static Measured over(Measured left, Measured right) {
        return left.with(right, (x, y) -> x / y);
    }

    /** A machine that grows slower slows both sides of a restart, and is no doubt about their ratio. */
    @Test
    void aRatioIsTheMedianOfTheRatiosWithinRestarts() {
        Measured ratio = over(Measured.ofRestarts(20, 40, 100), Measured.ofRestarts(10, 20, 50));
        assertThat(ratio.value()).isEqualTo(2);
        assertThat(ratio.low()).isEqualTo(2);
        assertThat(ratio.high()).isEqualTo(2);
        Measured apart = over(Measured.ofRestarts(10, 20, 30), Measured.ofRestarts(40, 4, 10));
        assertThat(apart.value())
                .as("of 0.25, 5 and 3; of the medians it would be 2")
                .isEqualTo(3);
        assertThat(apart.low()).isEqualTo(0.25);
        assertThat(apart.high()).isEqualTo(5);
    }

    @Test
    void aRestartThatOneSideLostIsLeftOutOfBoth() {
        // the block of restart 2 was slow for both; paired by place instead of by number, it would be a difference
        Measured left = of(Map.of(1, 10.0, 2, 90.0, 3, 10.0, 4, 10.0), 4);
        Measured right = of(Map.of(1, 10.0, 3, 10.0, 4, 10.0), 4);
        Measured ratio = over(left, right);
        assertThat(ratio.value()).isEqualTo(1);
        assertThat(ratio.low()).isEqualTo(1);
        assertThat(ratio.high()).isEqualTo(1);
        assertThat(ratio.restarts()).isEqualTo(3);
        assertThat(ratio.survivors()).isEqualTo("3 of 4");
    }

    /** Of six restarts there were, three have a ratio, whichever side lost the others. */
    @Test
    void aRestartThatEitherSideTriedCountsAsTried() {
        Measured left = of(Map.of(1, 10.0, 2, 10.0, 3, 10.0), 3);
        Measured right = of(Map.of(1, 5.0, 2, 5.0, 3, 5.0), 6);
        assertThat(over(left, right).survivors()).isEqualTo("3 of 6");
        assertThat(over(right, left).survivors()).isEqualTo("3 of 6");
        assertThat(over(left, right).isOfMost()).isFalse();
        assertThat(right.times(2).survivors()).isEqualTo("3 of 6");
        assertThat(left.times(2).survivors()).isEmpty();
    }

    @Test
    void noRestartInCommonAndNothingToDivideByAreNoFigure() {
        assertThat(over(of(Map.of(1, 10.0), 2), of(Map.of(2, 10.0), 2)).missing())
                .isEqualTo("no restart has both sides");
        assertThat(over(Measured.ofRestarts(1, 1), Measured.ofRestarts(1, 0)).missing())
                .isEqualTo("a division by nothing");
        assertThat(over(Measured.number(1), Measured.number(0)).missing()).isEqualTo("a division by nothing");
    }

    @Test
    void aShareIsTheMeanOverRestartsAndSoIsItsInterval() {
        Map<Integer, Measured.Restart> byRestart = new TreeMap<>();
        double[] shares = {100, 0, 100};
        for (int i = 0; i < shares.length; i++) {
            byRestart.put(i, new Measured.Restart(shares[i], new double[] {shares[i]}));
        }
        Measured share = Measured.of(byRestart, 3, true);
        assertThat(share.value()).isCloseTo(200.0 / 3, within(1e-9));
        assertThat(share.low()).isEqualTo(0);
        assertThat(share.high()).isEqualTo(100);
    }

    @Test
    void survivorsOfHalfOfTheRestartsDecideNothing() {
        assertThat(judge(of(Map.of(1, 1.0, 2, 1.0, 3, 1.0), 5), Measured.number(2))
                        .verdict())
                .isEqualTo(Verdict.HOLDS);
        Judgement few = judge(of(Map.of(1, 1.0, 2, 1.0, 3, 1.0), 6), Measured.ofRestarts(2, 2, 2, 2, 2, 2));
        assertThat(few.verdict()).isEqualTo(Verdict.NOT_DECIDED);
        assertThat(few.findings().getFirst().why())
                .isEqualTo("3 of 6 restarts count on both sides, and a verdict needs more than half");
    }

    /**
     * What docs/studies.md says of equal technologies. Restarts differ by 10 %, and what seconds make of one by 1 %.
     */
    @ParameterizedTest
    @ValueSource(ints = {3, 5, 10})
    void claimsOnEqualsAreRarelyDecidedForSure(int restarts) {
        SplittableRandom random = new SplittableRandom(40 + restarts);
        int decided = 0;
        int sure = 0;
        for (int i = 0; i < CLAIMS; i++) {
            Judgement judgement = judge(drawn(random, restarts), drawn(random, restarts));
            decided += judgement.verdict() == Verdict.NOT_DECIDED ? 0 : 1;
            sure += judgement.verdict() == Verdict.NOT_DECIDED || judgement.isIndicative() ? 0 : 1;
        }
        System.out.printf(
                java.util.Locale.ROOT,
                "claims on equals, %d restarts: %.1f %% decided, of all %.1f %% not merely indicative%n",
                restarts,
                100.0 * decided / CLAIMS,
                100.0 * sure / CLAIMS);
        assertThat(sure).isLessThanOrEqualTo((int) (CLAIMS * MAX));
    }

    private static Measured drawn(SplittableRandom random, int restarts) {
        Map<Integer, Measured.Restart> byRestart = new TreeMap<>();
        for (int restart = 1; restart <= restarts; restart++) {
            double value = 10 * Math.exp(0.1 * random.nextGaussian());
            double[] redrawn = new double[50];
            for (int i = 0; i < redrawn.length; i++) {
                redrawn[i] = value * (1 + 0.01 * random.nextGaussian());
            }
            byRestart.put(restart, new Measured.Restart(value, redrawn));
        }
        return Measured.of(byRestart, restarts, false);
    }

    private static Judgement judge(Measured left, Measured right) {
        return new Claim("it", "here", "is so", "a[technology=l] < a[technology=r]", "", "")
                .judge(cell -> cell.condition("technology").equals("l") ? left : right);
    }

    private static Measured lumpy(double value, double... redrawn) {
        Map<Integer, Measured.Restart> byRestart = new TreeMap<>();
        for (int restart = 1; restart <= 3; restart++) {
            byRestart.put(restart, new Measured.Restart(value, redrawn));
        }
        return Measured.of(byRestart, 3, false);
    }

    @Test
    void theMiddleOfAnEvenNumberLiesBetweenTheMiddleTwo() {
        assertThat(Measured.ofRestarts(8, 1, 4, 2).value()).isEqualTo(3);
        assertThat(Measured.ofRestarts(8, 1, 4).value()).isEqualTo(4);
        assertThat(Measured.ofRestarts(8).value()).isEqualTo(8);
    }

    @Test
    void theIntervalHoldsTheFigureAndHasATwentiethBeyondIt() {
        assertThat(lumpy(10, 8).low()).isEqualTo(8);
        assertThat(lumpy(10, 8).high()).isEqualTo(10);
        assertThat(lumpy(10, 12).low()).isEqualTo(10);
        assertThat(lumpy(10, 12).high()).isEqualTo(12);
        Map<Integer, Measured.Restart> one = new TreeMap<>();
        double[] thousand = new double[1_000];
        for (int i = 0; i < thousand.length; i++) {
            thousand[i] = i + 1;
        }
        one.put(1, new Measured.Restart(500, thousand));
        Measured spread = Measured.of(one, 1, false);
        assertThat(spread.low()).isBetween(15.0, 37.0);
        assertThat(spread.high()).isBetween(963.0, 985.0);
        Map<Integer, Measured.Restart> shares = new TreeMap<>();
        shares.put(1, new Measured.Restart(0, new double[] {0}));
        shares.put(2, new Measured.Restart(0, new double[] {0}));
        shares.put(3, new Measured.Restart(3, new double[] {3}));
        assertThat(Measured.of(shares, 3, true).value()).isEqualTo(1);
        assertThat(Measured.of(shares, 3, true).high())
                .as("a mean of 3, 3, 3 comes once in 27")
                .isEqualTo(3);
    }

    /** Of three restarts, t is 4.3027 where a normal distribution has 1.9600; and √(3 / 2) beside it. */
    @Test
    void fewRestartsAskForAWiderInterval() {
        double power = 4.302653 / 1.959964 * Math.sqrt(1.5);
        assertThat(lumpy(10, 8).wideLow()).isCloseTo(10 * Math.pow(0.8, power), within(1e-4));
        assertThat(lumpy(10, 12).wideHigh()).isCloseTo(10 * Math.pow(1.2, power), within(1e-4));
        assertThat(lumpy(10, 0).wideLow()).as("nothing has no logarithm").isZero();
        assertThat(lumpy(0, 5).wideHigh()).isEqualTo(5);
        assertThat(lumpy(-2, 5).wideHigh()).isEqualTo(5);
        assertThat(Measured.number(3).wideLow()).isEqualTo(3);
        assertThat(Measured.number(3).wideHigh()).isEqualTo(3);
    }

    @Test
    void aFigureSaysHowManyRestartsItRestsOn() {
        Measured three = of(Map.of(1, 1.0, 2, 1.0, 3, 1.0), 5);
        assertThat(three.restarts()).isEqualTo(3);
        assertThat(three.count()).isEqualTo("3 of 5");
        assertThat(three.survivors()).isEqualTo("3 of 5");
        assertThat(three.isOfMost()).isTrue();
        assertThat(of(Map.of(1, 1.0, 2, 1.0), 4).isOfMost()).isFalse();
        assertThat(of(Map.of(1, 1.0, 2, 1.0), 5).isOfMost()).isFalse();
        assertThat(Measured.ofRestarts(1, 2).count()).isEqualTo("2");
        assertThat(Measured.ofRestarts(1, 2).survivors()).isEmpty();
        assertThat(Measured.ofRestarts(1, 2).isMissing()).isFalse();
        assertThat(Measured.number(7).count()).isEmpty();
        assertThat(Measured.number(7).survivors()).isEmpty();
        assertThat(Measured.number(7).isOfMost()).isTrue();
        assertThat(Measured.number(7).low()).isEqualTo(7);
        assertThat(Measured.number(7).high()).isEqualTo(7);
        Measured none = Measured.missing("why");
        assertThat(none.count()).isEmpty();
        assertThat(none.survivors()).isEmpty();
        assertThat(none.value()).isNaN();
        assertThat(none.low()).isNaN();
        assertThat(none.high()).isNaN();
        assertThat(none.isMissing()).isTrue();
    }

    @Test
    void figuresAreComputedWithWithinEachRestart() {
        Measured six = Measured.ofRestarts(6, 8, 7);
        assertThat(six.times(1)).isSameAs(six);
        assertThat(six.times(10).value()).isEqualTo(70);
        assertThat(six.times(10).low()).isEqualTo(60);
        assertThat(Measured.number(3).times(2).value()).isEqualTo(6);
        assertThat(over(Measured.number(42), six).value()).isEqualTo(6);
        assertThat(over(Measured.number(42), six).restarts()).isEqualTo(3);
        assertThat(over(six, Measured.number(7)).value()).isEqualTo(1);
        assertThat(over(six, Measured.missing("not there")).missing()).isEqualTo("not there");
        assertThat(over(Measured.missing("neither"), Measured.missing("not there"))
                        .missing())
                .isEqualTo("neither");
        Map<Integer, Measured.Restart> drawn = new TreeMap<>();
        drawn.put(1, new Measured.Restart(10, new double[] {9, 10, 12}));
        Measured ratio = over(Measured.of(drawn, 2, true), Measured.ofRestarts(2, 5));
        assertThat(ratio.value()).isEqualTo(5);
        assertThat(ratio.low()).isEqualTo(4.5);
        assertThat(ratio.high()).isEqualTo(6);
        assertThat(ratio.survivors()).isEqualTo("1 of 2");
    }

    /** A share over a time is a mean on either side, and two times are none. */
    @Test
    void whatIsComputedWithAShareIsAMean() {
        Map<Integer, Measured.Restart> shares = new TreeMap<>();
        double[] values = {0, 0, 3};
        for (int i = 0; i < values.length; i++) {
            shares.put(i + 1, new Measured.Restart(values[i], new double[] {values[i]}));
        }
        Measured share = Measured.of(shares, 3, true);
        Measured ones = Measured.ofRestarts(1, 1, 1);
        assertThat(over(share, ones).value()).isEqualTo(1);
        assertThat(ones.with(share, (x, y) -> x + y).value()).isEqualTo(2);
        assertThat(ones.with(Measured.ofRestarts(0, 0, 3), (x, y) -> x + y).value())
                .isEqualTo(1);
    }
}
