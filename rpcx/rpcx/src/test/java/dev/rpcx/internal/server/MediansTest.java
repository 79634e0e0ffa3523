package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MediansTest {
    private final Medians medians = new Medians(16);

    @Test
    void ofNothingThereIsNone() {
        assertThat(medians.median()).isZero();
        medians.add(5, 0);
        assertThat(medians.size()).isZero();
        assertThat(medians.median()).isZero();
    }

    @Test
    void theFirstThatReachesHalfOfAllWeightIsTheMiddle() {
        medians.add(3, 1);
        medians.add(1, 1);
        assertThat(medians.median()).isEqualTo(1);
        medians.add(2, 1);
        assertThat(medians.median()).isEqualTo(2);
        medians.add(4, 2.5);
        assertThat(medians.median()).isEqualTo(3);
        medians.add(5, 6);
        assertThat(medians.median()).isEqualTo(5);
        assertThat(medians.size()).isEqualTo(5);
    }

    /** The median is the middle of a list in which each value is as often as its weight says. */
    @Test
    void itIsTheMiddleOfAListWithEachValueAsOftenAsItsWeightSays() {
        Random random = new Random(1);
        for (int round = 0; round < 2_000; round++) {
            medians.clear();
            List<Double> all = new ArrayList<>();
            int size = 1 + random.nextInt(16);
            for (int i = 0; i < size; i++) {
                double value = random.nextInt(10);
                int weight = 1 + random.nextInt(5);
                medians.add(value, weight);
                for (int j = 0; j < weight; j++) {
                    all.add(value);
                }
            }
            all.sort(null);
            assertThat(medians.median()).isEqualTo(all.get((all.size() - 1) / 2));
        }
    }
}
