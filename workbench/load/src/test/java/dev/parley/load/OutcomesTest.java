package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** Every request has one outcome, and its times are those of its own ends. Times under 2 048 ns are kept exactly. */
class OutcomesTest {
    private static final long LIMIT_NS = 500;

    private final Outcomes outcomes = new Outcomes(LIMIT_NS);

    private Histogram responses() {
        Histogram all = new Histogram(Outcomes.DIGITS);
        outcomes.takeResponses(all);
        return all;
    }

    @Test
    void aReplyWithinTheLimitIsASuccessAndItsTimeRunsFromWhenItWasDue() {
        outcomes.answered(0, true, 100, 300, 600);
        assertThat(outcomes.counts()).isEqualTo(Outcomes.Counts.NONE);
        Histogram responses = responses();
        assertThat(responses.getTotalCount()).isEqualTo(1);
        assertThat(responses.getMaxValue()).isEqualTo(500);
        assertThat(outcomes.serviceTimes().getMaxValue()).isEqualTo(300);
        assertThat(outcomes.errorTimes().getTotalCount()).isZero();
    }

    @Test
    void aReplyOverTheLimitIsLateAndStaysOutOfTheResponseTimes() {
        outcomes.answered(0, true, 100, 300, 601);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(1, 0, 0, 0));
        assertThat(responses().getTotalCount()).isZero();
        assertThat(outcomes.serviceTimes().getTotalCount()).isZero();
        assertThat(outcomes.errorTimes().getMaxValue()).isEqualTo(501);
    }

    @Test
    void aWrongReplyIsWrongHoweverFast() {
        outcomes.answered(0, false, 100, 100, 150);
        outcomes.answered(0, false, 100, 100, 1100);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 2, 0, 0));
        assertThat(responses().getTotalCount()).isZero();
        Histogram errors = outcomes.errorTimes();
        assertThat(errors.getTotalCount()).isEqualTo(2);
        assertThat(errors.getMinNonZeroValue()).isEqualTo(50);
        assertThat(errors.getMaxValue()).isEqualTo(1000);
    }

    @Test
    void whatFailsIsCountedTimedAndTheFirstCauseKept() {
        assertThat(outcomes.firstFailure()).isEmpty();
        outcomes.failed(new IllegalStateException("first"), 100, 107);
        outcomes.failed(new IllegalStateException("second"), 100, 109);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 2, 0));
        assertThat(outcomes.firstFailure()).contains("first");
        Histogram errors = outcomes.errorTimes();
        assertThat(errors.getMinNonZeroValue()).isEqualTo(7);
        assertThat(errors.getMaxValue()).isEqualTo(9);
    }

    @Test
    void whatIsNotSentAndWhatIsToldTwiceIsCounted() {
        outcomes.due(7);
        outcomes.due(2);
        outcomes.notSent(3);
        outcomes.toldTwice();
        outcomes.toldTwice();
        assertThat(outcomes.due()).isEqualTo(9);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 0, 3));
        assertThat(outcomes.twice()).isEqualTo(2);
    }

    @Test
    void sendDelaysAndScenariosHaveDistributionsOfTheirOwn() {
        outcomes.sent(100, 140);
        // a clock of another core may be a little behind: no delay, and no fault
        outcomes.sent(100, 90);
        outcomes.scenario(1234);
        outcomes.scenario(-5);
        Histogram delays = outcomes.sendDelays();
        assertThat(delays.getTotalCount()).isEqualTo(2);
        assertThat(delays.getMaxValue()).isEqualTo(40);
        assertThat(delays.getMinValue()).isZero();
        Histogram scenarios = outcomes.scenarioTimes();
        assertThat(scenarios.getTotalCount()).isEqualTo(2);
        assertThat(scenarios.getMaxValue()).isEqualTo(1234);
    }

    @Test
    void timesThatWouldBeNegativeAreNone() {
        outcomes.answered(0, true, 100, 100, 90);
        outcomes.failed(new IllegalStateException(), 100, 90);
        assertThat(responses().getMaxValue()).isZero();
        assertThat(outcomes.serviceTimes().getMaxValue()).isZero();
        assertThat(outcomes.errorTimes().getMaxValue()).isZero();
    }

    @Test
    void repliesOfEveryWorkerAreTakenOnce() {
        for (int worker = 0; worker < 40; worker++) {
            outcomes.answered(worker, true, 0, 0, worker + 1);
        }
        Histogram all = new Histogram(Outcomes.DIGITS);
        outcomes.takeResponses(all);
        assertThat(all.getTotalCount()).isEqualTo(40);
        outcomes.takeResponses(all);
        assertThat(all.getTotalCount()).isEqualTo(40);
        outcomes.answered(3, true, 0, 0, 77);
        outcomes.takeResponses(all);
        assertThat(all.getTotalCount()).isEqualTo(41);
        assertThat(outcomes.serviceTimes().getTotalCount()).isEqualTo(41);
        // the whole, however often it is asked for
        assertThat(outcomes.serviceTimes().getTotalCount()).isEqualTo(41);
    }

    @Test
    void theNumberInTheSystemIsIntegratedOverTime() {
        outcomes.entered(100);
        outcomes.entered(150);
        outcomes.left(180);
        outcomes.left(300);
        // 80 or 200, and 150 or 30: together 230 either way
        assertThat(outcomes.inSystemNs()).isEqualTo(230);
    }

    @Test
    void whatNeverLeftHasFailedAtTheEndAndSharesTheMeanOfWhenItEntered() {
        outcomes.entered(100);
        outcomes.entered(200);
        outcomes.entered(300);
        outcomes.left(310);
        outcomes.closeInSystem(new IllegalStateException("never ended"), 1000);
        assertThat(outcomes.counts()).isEqualTo(new Outcomes.Counts(0, 0, 2, 0));
        assertThat(outcomes.firstFailure()).contains("never ended");
        // 310 + 2 · 1 000 − 600
        assertThat(outcomes.inSystemNs()).isEqualTo(1710);
        Histogram errors = outcomes.errorTimes();
        assertThat(errors.getTotalCount()).isEqualTo(2);
        assertThat(errors.getMaxValue()).isEqualTo(855);
        outcomes.closeInSystem(new IllegalStateException("again"), 2000);
        assertThat(outcomes.counts().failed()).isEqualTo(2);
    }

    @Test
    void countsAreAddedAndSubtractedEachByItself() {
        Outcomes.Counts more = new Outcomes.Counts(10, 200, 3000, 40000);
        Outcomes.Counts less = new Outcomes.Counts(1, 20, 300, 4000);
        assertThat(more.sum()).isEqualTo(43210);
        assertThat(more.since(less)).isEqualTo(new Outcomes.Counts(9, 180, 2700, 36000));
        assertThat(more.plus(less)).isEqualTo(new Outcomes.Counts(11, 220, 3300, 44000));
    }
}
