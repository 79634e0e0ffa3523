package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;

class TTestTest {
    private static double[] exp(double... logs) {
        return DoubleStream.of(logs).map(Math::exp).toArray();
    }

    @Test
    void threeRestartsOnOneSideAreNotSureByThemselves() {
        // mean 0.08, deviation 0.04: t = 3.46 with two degrees of freedom
        assertThat(TTest.paired(exp(0.04, 0.08, 0.12)).p()).isCloseTo(0.0742, within(5e-5));
        assertThat(TTest.paired(exp(0.04, 0.08, 0.12)).times(2).p()).isLessThan(0.01);
    }

    /**
     * Student's own data, Biometrika 1908: hours of sleep gained by two drugs; t = −4.0621 paired, −1.8608 with 17.776
     * degrees of freedom unpaired.
     */
    @Test
    void studentsOwnDataGivesStudentsResult() {
        double[] first = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
        double[] second = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
        double[] gains = new double[first.length];
        for (int i = 0; i < gains.length; i++) {
            gains[i] = first[i] - second[i];
        }
        assertThat(TTest.paired(exp(gains)).p()).isCloseTo(0.002833, within(1e-6));
        TTest welch = TTest.welch(exp(first), exp(second));
        assertThat(welch.freedom()).isCloseTo(17.776, within(1e-3));
        assertThat(welch.p()).isCloseTo(0.07939, within(1e-5));
    }

    /** Mean 0.01, standard error 0.01, nine degrees of freedom: the nearer border is t = 3.879 away. */
    @Test
    void whatLiesWellWithinTheBorderIsShownToLieThere() {
        TTest test = new TTest(0.01, 0.01, 9);
        assertThat(test.pBeyond(0.04879)).isCloseTo(0.0018685, within(1e-6));
        assertThat(new TTest(-0.01, 0.01, 9).pBeyond(0.04879)).isEqualTo(test.pBeyond(0.04879));
        assertThat(new TTest(0.05, 0.01, 9).pBeyond(0.04879)).isGreaterThan(0.5);
        assertThat(new TTest(0, 1, 9).pBeyond(0.04879)).isGreaterThan(0.4);
        assertThat(new TTest(0, 0, 9).pBeyond(0.04879)).isZero();
        assertThat(new TTest(0.1, 0, 9).pBeyond(0.04879)).isEqualTo(1);
        assertThat(TTest.NONE.pBeyond(0.04879)).isEqualTo(1);
    }

    @Test
    void tooFewRestartsAndRestartsWithoutAnAnswerSayNothing() {
        assertThat(TTest.paired(new double[0]).p()).isEqualTo(1);
        assertThat(TTest.paired(exp(1)).p()).isEqualTo(1);
        assertThat(TTest.paired(new double[] {0, 2, Double.POSITIVE_INFINITY}).p())
                .isEqualTo(1);
        assertThat(TTest.paired(new double[] {0, 2, 2.1, 1.9, 2}).p())
                .as("not of the four that are left")
                .isEqualTo(1);
        assertThat(TTest.paired(new double[] {2, 2, 2}).p()).isZero();
        assertThat(TTest.paired(new double[] {1, 1, 1}).p()).isEqualTo(1);
        assertThat(TTest.welch(exp(1), exp(1, 2)).p()).isEqualTo(1);
    }

    /** One degree of freedom is Cauchy's distribution: t = 1 has p = 0.5. */
    @Test
    void twoRestartsAreTheFewestThatSayAnything() {
        TTest two = TTest.paired(exp(0, 0.2));
        assertThat(two.freedom()).isEqualTo(1);
        assertThat(two.p()).isCloseTo(0.5, within(1e-9));
        assertThat(new TTest(0.1, 0.1, 1).pBeyond(0.2)).isCloseTo(0.25, within(1e-9));
        assertThat(new TTest(0.1, 0.1, 0.9).p()).isEqualTo(1);
        assertThat(new TTest(0.1, 0.1, 0.9).pBeyond(0.2)).isEqualTo(1);
        assertThat(TTest.paired(exp(0.3))).isEqualTo(TTest.NONE);
    }

    /** Two of two each, alike in spread: as many degrees of freedom as there are restarts, less two. */
    @Test
    void twoOfEachSideAreTheFewestThatAreNoPairs() {
        TTest two = TTest.welch(exp(0, 0.2), exp(1, 1.2));
        assertThat(two.mean()).isCloseTo(-1, within(1e-12));
        assertThat(two.error()).isCloseTo(Math.sqrt(0.02), within(1e-12));
        assertThat(two.freedom()).isCloseTo(2, within(1e-9));
        assertThat(TTest.welch(exp(1, 2), exp(1))).isEqualTo(TTest.NONE);
        assertThat(TTest.welch(exp(1), exp(1, 2))).isEqualTo(TTest.NONE);
        assertThat(TTest.welch(new double[] {2, 2, 2}, new double[] {3, 3}).freedom())
                .as("without any spread")
                .isEqualTo(3);
    }

    @Test
    void aRatioRightAtTheBorderIsAsLikelyAsNot() {
        assertThat(new TTest(0.05, 0.01, 9).pBeyond(0.05)).isCloseTo(0.5, within(1e-9));
        assertThat(new TTest(0.05, 0, 9).pBeyond(0.05)).isEqualTo(1);
        assertThat(new TTest(0.05, 0, 9).p()).isZero();
        assertThat(new TTest(0, 0, 9).p()).isEqualTo(1);
    }

    /** 1, 2 and 3 are 2 from 0 in the mean, with a standard error of 1 / √3: t = 3.46 with two degrees of freedom. */
    @Test
    void valuesAreHeldAgainstABorder() {
        assertThat(TTest.against(new double[] {1, 2, 3}, 0).p()).isCloseTo(0.0742, within(5e-5));
        assertThat(TTest.against(new double[] {11, 12, 13}, 10)).isEqualTo(TTest.against(new double[] {1, 2, 3}, 0));
        assertThat(TTest.against(new double[] {9, 8, 7}, 10).mean()).isEqualTo(-2);
        assertThat(TTest.against(new double[] {7, 7, 7}, 7).error()).isZero();
        assertThat(TTest.against(new double[] {7, 7, Double.POSITIVE_INFINITY}, 7))
                .isEqualTo(TTest.NONE);
        assertThat(TTest.against(new double[] {7}, 6)).isEqualTo(TTest.NONE);
    }

    @Test
    void timesAsManyRestartsHaveARootOfTheErrorAndTheirOwnFreedom() {
        TTest fourfold = new TTest(0.3, 0.2, 4).times(4);
        assertThat(fourfold.mean()).isEqualTo(0.3);
        assertThat(fourfold.error()).isCloseTo(0.1, within(1e-12));
        assertThat(fourfold.freedom()).isEqualTo(19);
    }
}
