package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.protocol.Event;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CeilingTest {
    private static Event.Finished trial(long replied, long notSent) {
        return new Event.Finished(
                1, 2_000_000_000L, 0, true, replied, 0, 0, 0, notSent, 0.3, 0, 0, 1, 0, 0, List.of(), "");
    }

    @Test
    void aThroughputNearTheGeneratorsOwnIsNotBelieved() {
        Ceiling ceiling = new Ceiling(10_000);
        assertThat(ceiling.complaint(trial(14_000, 0))).isEmpty();
        assertThat(ceiling.complaint(trial(14_000, 50_000))).isEmpty();
        assertThat(ceiling.complaint(trial(14_200, 0)))
                .contains(
                        "7100 requests/s are over 70 % of the 10000 that the load generator reaches here against a server that does nothing");
        assertThat(Ceiling.NONE.complaint(trial(1_000_000, 0))).isEmpty();
    }

    private static Ceiling.Window rates(List<Double> asked, double... rates) {
        return () -> {
            asked.add(rates[Math.min(asked.size(), rates.length - 1)]);
            return asked.getLast();
        };
    }

    /**
     * What the compilers of the generator have not reached yet is no ceiling, whatever the study is that asks for it.
     */
    @Test
    void itIsThatOfAWarmGenerator() throws InterruptedException {
        List<Double> asked = new ArrayList<>();
        assertThat(Ceiling.warm(rates(asked, 9_000, 31_000, 52_000, 60_000, 61_000, 60_500, 99_000)))
                .isEqualTo(new Ceiling(61_000));
        assertThat(asked)
                .as("until two in a row rise by no more than a twentieth")
                .hasSize(6);
        asked.clear();
        assertThat(Ceiling.warm(rates(asked, 50_000))).isEqualTo(new Ceiling(50_000));
        assertThat(asked).hasSize(3);
        asked.clear();
        assertThat(Ceiling.warm(rates(asked, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)))
                .isEqualTo(new Ceiling(512));
        assertThat(asked).hasSize(Ceiling.MAX_WINDOWS);
    }

    @Test
    void itIsMeasuredAnewWhenItIsOld() throws InterruptedException {
        Ceiling.Kept kept = new Ceiling.Kept();
        List<Double> asked = new ArrayList<>();
        Ceiling.Measurement measurement = () -> {
            asked.add(0.0);
            return new Ceiling(asked.size());
        };
        long old = Ceiling.MAX_AGE.toNanos();
        assertThat(kept.at(-5, measurement).perSecond()).isEqualTo(1);
        assertThat(kept.at(old - 6, measurement).perSecond()).isEqualTo(1);
        assertThat(kept.at(old - 5, measurement).perSecond()).isEqualTo(2);
        assertThat(kept.at(old, measurement).perSecond()).isEqualTo(2);
    }
}
