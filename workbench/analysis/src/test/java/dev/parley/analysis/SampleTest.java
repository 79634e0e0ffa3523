package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Metric;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class SampleTest {
    private static final Sample THREE = Sample.of(new TreeMap<>(Map.of(2, 10.0, 5, 30.0, 6, 20.0)));

    @Test
    void pointsKeepTheirRestartsAndWhatIsNoNumberIsLeftOut() {
        Sample sample = Sample.of(new TreeMap<>(Map.of(1, 4.0, 2, Double.NaN, 3, Double.POSITIVE_INFINITY, 4, 0.0)));
        assertThat(sample.restarts()).containsExactly(1, 4);
        assertThat(sample.points()).containsExactly(4, 0);
        assertThat(sample.pools()).containsExactly(new double[] {4}, new double[] {0});
        assertThat(sample.count()).isEqualTo(2);
        assertThat(sample.tried()).isEqualTo(2);
        assertThat(Sample.ofPoints(7, 8).restarts()).containsExactly(1, 2);
        assertThat(Sample.NONE.count()).isZero();
    }

    @Test
    void moreWereTriedThanAreLeftAndNeverFewer() {
        assertThat(THREE.ofTried(5).tried()).isEqualTo(5);
        assertThat(THREE.ofTried(2).tried()).isEqualTo(3);
    }

    @Test
    void everyPointIsAboveZeroAndHasAnEndOrThereIsNoRatio() {
        assertThat(THREE.isPositive()).isTrue();
        assertThat(Sample.ofPoints(1, 0).isPositive()).isFalse();
        assertThat(Sample.ofPoints(1, -1).isPositive()).isFalse();
        assertThat(new Sample(new int[] {1}, new double[] {Double.POSITIVE_INFINITY}, List.of(new double[] {1}), 1)
                        .isPositive())
                .isFalse();
    }

    @Test
    void redrawnValuesAreThoseOfEachPointOrOfNone() {
        List<double[]> each = List.of(new double[] {9, 11}, new double[] {29}, new double[] {20, 21});
        assertThat(THREE.redrawn(each).pools()).isEqualTo(each);
        assertThat(THREE.redrawn(each).tried()).isEqualTo(3);
        assertThat(THREE.redrawn(each.subList(0, 2))).isSameAs(THREE);
        assertThat(THREE.redrawn(each).least()).isEqualTo(9);
        assertThat(THREE.redrawn(each).most()).isEqualTo(29);
        assertThat(Sample.NONE.least()).isNaN();
        assertThat(Sample.NONE.most()).isNaN();
    }

    @Test
    void restartsThatBothHaveAreDividedOneByOne() {
        Sample other = Sample.of(new TreeMap<>(Map.of(1, 7.0, 2, 5.0, 6, 40.0))).ofTried(9);
        Sample ratio = THREE.over(other, new SplittableRandom(1));
        assertThat(ratio.restarts()).containsExactly(2, 6);
        assertThat(ratio.points()).containsExactly(2, 0.5);
        assertThat(ratio.tried()).isEqualTo(9);
        assertThat(other.over(THREE, new SplittableRandom(1)).tried()).isEqualTo(9);
        assertThat(ratio.pools()).hasSize(2).allSatisfy(pool -> assertThat(pool).hasSize(Sample.POOL));
        assertThat(ratio.pools().getFirst()).containsOnly(2);
    }

    @Test
    void redrawnValuesAreDividedByRedrawnValues() {
        Sample first = Sample.ofPoints(10).redrawn(List.of(new double[] {10, 20}));
        Sample second = Sample.ofPoints(5).redrawn(List.of(new double[] {1, 5}));
        double[] pool = first.over(second, new SplittableRandom(3)).pools().getFirst();
        assertThat(pool).contains(10, 20, 2, 4).containsOnly(10, 20, 2, 4);
    }

    @Test
    void theMedianOfAnEvenNumberLiesBetweenTheMiddleTwo() {
        assertThat(Sample.median(new double[] {3, 1, 2})).isEqualTo(2);
        assertThat(Sample.median(new double[] {4, 1, 2, 8})).isEqualTo(3);
        assertThat(Sample.median(new double[] {5})).isEqualTo(5);
        assertThat(Sample.median(new double[0])).isNaN();
        assertThat(THREE.median()).isEqualTo(20);
        assertThat(THREE.points()).as("in their own order still").containsExactly(10, 30, 20);
        assertThat(THREE.middle(true)).isEqualTo(20);
        assertThat(Sample.ofPoints(1, 2, 9).middle(true)).isEqualTo(4);
        assertThat(Sample.ofPoints(1, 2, 9).middle(false)).isEqualTo(2);
        assertThat(Sample.NONE.middle(true)).isNaN();
        assertThat(Sample.NONE.middle(false)).isNaN();
    }

    @Test
    void aQuantileHasItsShareAtOrBelowIt() {
        double[] ten = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        assertThat(Sample.quantile(ten, 0)).isEqualTo(1);
        assertThat(Sample.quantile(ten, 0.1)).isEqualTo(1);
        assertThat(Sample.quantile(ten, 0.11)).isEqualTo(2);
        assertThat(Sample.quantile(ten, 0.5)).isEqualTo(5);
        assertThat(Sample.quantile(ten, 0.95)).isEqualTo(10);
        assertThat(Sample.quantile(ten, 1)).isEqualTo(10);
    }

    @Test
    void drawsAreMiddlesOfRestartsDrawnAgainAscending() {
        Sample sample = Sample.ofPoints(0, 0, 3);
        double[] means = sample.draws(new SplittableRandom(5), true);
        assertThat(means).hasSize(Sample.DRAWS).isSorted().containsOnly(0, 1, 2, 3);
        assertThat(Arrays.stream(means).average().orElseThrow()).isBetween(0.93, 1.07);
        double[] medians = sample.draws(new SplittableRandom(5), false);
        assertThat(medians).hasSize(Sample.DRAWS).isSorted().containsOnly(0, 3);
        // two or three of three are the third: 7 of 27
        assertThat(Arrays.stream(medians).filter(m -> m == 3).count()).isBetween(460L, 580L);
        double single = Sample.ofPoints(4).redrawn(List.of(new double[] {6})).draw(new SplittableRandom(1));
        assertThat(single).isEqualTo(6);
    }

    @Test
    void anIntervalHasTwoAndAHalfPercentBeyondEachEnd() {
        double[] thousand = new double[1_000];
        Arrays.setAll(thousand, i -> i + 1);
        Estimate estimate = Estimate.of(Sample.ofPoints(500).redrawn(List.of(thousand)), 3);
        assertThat(estimate.value()).isEqualTo(500);
        assertThat(estimate.low()).isBetween(15.0, 37.0);
        assertThat(estimate.high()).isBetween(963.0, 985.0);
        assertThat(Estimate.of(Sample.ofPoints(500).redrawn(List.of(new double[] {400})), 3))
                .isEqualTo(new Estimate(500, 400, 500));
        assertThat(Estimate.of(Sample.ofPoints(500).redrawn(List.of(new double[] {600})), 3))
                .isEqualTo(new Estimate(500, 500, 600));
        assertThat(Estimate.of(Metric.THROUGHPUT, Sample.ofPoints(500), 3)).isEqualTo(new Estimate(500, 500, 500));
        assertThat(Estimate.of(Sample.NONE, 3)).isEqualTo(Estimate.NONE);
        assertThat(Estimate.NONE.isPresent()).isFalse();
        assertThat(estimate.isPresent()).isTrue();
    }

    @Test
    void aShareOfRequestsIsTheMeanOverRestartsAndAnythingElseTheMedian() {
        Sample sample = Sample.ofPoints(0, 0, 3);
        assertThat(Estimate.of(Metric.SUCCESS_SHARE, sample, 3).value()).isEqualTo(1);
        assertThat(Estimate.of(Metric.THROUGHPUT, sample, 3).value()).isZero();
    }

    private static Redrawn.Restart restart(Redrawn of, int number) {
        return Objects.requireNonNull(of.byRestart().get(number));
    }

    @Test
    void figuresOfSeveralSubjectsAreAveragedInRestartsThatHaveAll() {
        assertThat(Redrawn.mean(List.of())).isEqualTo(Optional.empty());
        Sample other = Sample.of(new TreeMap<>(Map.of(2, 20.0, 6, 40.0))).ofTried(7);
        Sample drawn = other.redrawn(List.of(new double[] {20, 22}, new double[] {40}));
        Redrawn mean = Redrawn.mean(List.of(Redrawn.of(THREE, true), Redrawn.of(drawn, true)))
                .orElseThrow();
        assertThat(mean.byRestart()).containsOnlyKeys(2, 6);
        assertThat(restart(mean, 2).value()).isEqualTo(15);
        assertThat(restart(mean, 2).redrawn()).containsExactly(15, 16);
        assertThat(restart(mean, 6).redrawn()).containsExactly(30);
        assertThat(mean.tried()).isEqualTo(7);
        assertThat(mean.isMean()).isTrue();
        assertThat(mean.count()).isEqualTo(2);
        assertThat(Redrawn.of(THREE, false).isMean()).isFalse();
        assertThat(restart(Redrawn.of(THREE, false), 5).value()).isEqualTo(30);
    }
}
