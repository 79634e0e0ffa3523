package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Two boots of two trials of 1.2 to 1.4 s. A boot takes 2.8 to 6 s beside its trials, and a second for the empty
 * service; the first has 6 s more for the ceiling; the report takes 1.08 to 3.4 s.
 */
class TimeLeftTest {
    private static final Instant BEGAN = Instant.parse("2026-11-23T14:00:00Z");

    private final Plan plan = Plan.of(TinyRun.study(List.of("rpcx"), 2, Duration.ofSeconds(1)));
    private final TimeLeft left = new TimeLeft(plan);

    private static long ns(double seconds) {
        return Math.round(seconds * 1e9);
    }

    private static TimeRange range(double leastSeconds, double mostSeconds) {
        return new TimeRange(Duration.ofNanos(ns(leastSeconds)), Duration.ofNanos(ns(mostSeconds)));
    }

    private TrialSpec trial(int id) {
        return plan.trials().get(id);
    }

    private TrialRow took(int id, double seconds) {
        return ended(id, seconds, TrialRow.State.FINISHED);
    }

    private TrialRow ended(int id, double seconds, TrialRow.State state) {
        return new TrialRow(trial(id), state, BEGAN, BEGAN.plusNanos(ns(seconds)), List.of(), "");
    }

    @Test
    void beforeTheFirstBootAllOfThePlanIsLeft() {
        assertThat(left.at(ns(0))).isEqualTo(range(19.48, 29));
        assertThat(new TimeLeft(new Plan(List.of())).at(ns(0))).isEqualTo(TimeRange.NONE);
    }

    /** It was the pace so far times the trials left, which grew for as long as services started and rehearsed. */
    @Test
    void timeThatPassesIsTimeThatIsNotLeft() {
        assertThat(left.booting(0, ns(0))).isEmpty();
        assertThat(left.at(ns(5))).isEqualTo(range(14.48, 24));
        assertThat(left.ended(took(0, 1.3), ns(10))).isEmpty();
        TimeRange told = left.at(ns(10));
        for (int second = 10; second < 100; second++) {
            TimeRange next = left.at(ns(second));
            assertThat(next.most()).isLessThanOrEqualTo(told.most());
            told = next;
        }
        assertThat(told)
                .as("a boot that takes longer than planned: what comes after it is still left")
                .isEqualTo(range(1.08 + 6.3, 3.4 + 9.7));
    }

    /** A boot of 3 s and trials of 1.3 and 1.25 s: the next one, of the same, takes as long. */
    @Test
    void aRestartTakesWhatTheSameTookBefore() {
        left.booting(0, ns(0));
        left.ended(took(0, 1.3), ns(9));
        left.ended(took(1, 1.25), ns(12.55));
        assertThat(left.booting(1, ns(12.55))).isEmpty();
        assertThat(left.at(ns(12.55)))
                .as("ten seconds beside the trials, of which seven were for the ceiling and the empty service")
                .isEqualTo(range(1.08 + 3 + 1 + 2.55, 3.4 + 3 + 1 + 2.55));
    }

    @Test
    void whatTakesLongerThanPlannedIsToldWhereItMakesTheTimeLeftGrow() {
        left.booting(0, ns(0));
        assertThat(left.at(ns(69))).isEqualTo(range(1.08 + 1.2 + 6.2, 3.4 + 1.4 + 9.8));
        assertThat(left.ended(took(0, 60), ns(70)))
                .contains("67 to 76 s left, more than before: rpcx text:10 " + trial(0).load()
                        + " took 60 s, expected: 1 s");
        assertThat(left.at(ns(70))).isEqualTo(range(67.08, 76.2));
    }

    @Test
    void aBootThatTakesLongerThanPlannedIsToldToo() {
        left.booting(0, ns(0));
        left.ended(took(0, 1.3), ns(51.3));
        left.ended(took(1, 1.3), ns(52.6));
        assertThat(left.booting(1, ns(52.6)).orElseThrow())
                .contains(" left, more than before: starting and rehearsing rpcx on line:2 took 50 s, expected: 9 to"
                        + " 13 s");
    }

    @Test
    void aBootThatFailedSaysNothingOfTheNext() {
        left.booting(0, ns(0));
        left.ended(ended(0, 0, TrialRow.State.FAILED), ns(60));
        left.ended(ended(1, 0, TrialRow.State.FAILED), ns(60));
        assertThat(left.booting(1, ns(60))).isEmpty();
        assertThat(left.at(ns(60))).isEqualTo(range(1.08 + 6.2, 3.4 + 9.8));
    }
}
