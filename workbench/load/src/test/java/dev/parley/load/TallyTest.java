package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.SecondRow;
import dev.parley.protocol.Event;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** A window taken from its parts while they run: seconds, steps and the whole hold the same requests. */
class TallyTest {
    private final List<Event> events = new ArrayList<>();
    private final Tally tally = new Tally(7, events::add);

    private static final Exception CAUSE = new IllegalStateException("never ended");

    private Stretch part(String label, long beganNs) {
        Stretch part = Stretch.held(label, 4, 1000, new Outcomes(500));
        part.beganNs = beganNs;
        tally.open(part);
        return part;
    }

    /** So many right replies of {@code ns}, each due and ended. */
    private static void right(Stretch part, int times, long ns) {
        for (int i = 0; i < times; i++) {
            part.outcomes.due(1);
            part.outcomes.answered(i, true, 0, 10, ns);
        }
    }

    private static void others(Stretch part, int late, int wrong, int failed, int notSent) {
        part.outcomes.due(late + wrong + failed + notSent);
        for (int i = 0; i < late; i++) {
            part.outcomes.answered(0, true, 0, 0, 600);
        }
        for (int i = 0; i < wrong; i++) {
            part.outcomes.answered(0, false, 0, 0, 100);
        }
        for (int i = 0; i < failed; i++) {
            part.outcomes.failed(new IllegalStateException("planted in " + part.label), 0, 700);
        }
        part.outcomes.notSent(notSent);
    }

    private static Histogram decoded(byte[] bytes) throws Exception {
        return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(bytes), 0);
    }

    private List<SecondRow> seconds() {
        return events.stream()
                .filter(Event.Second.class::isInstance)
                .map(Event.Second.class::cast)
                .map(Event.Second::row)
                .toList();
    }

    private List<Event.Step> steps() {
        return events.stream()
                .filter(Event.Step.class::isInstance)
                .map(Event.Step.class::cast)
                .toList();
    }

    @Test
    void eachSecondHoldsWhatEndedInIt() throws Exception {
        Stretch part = part("window", 0);
        right(part, 3, 100);
        others(part, 1, 2, 3, 4);
        assertThat(tally.take().getTotalCount()).isEqualTo(3);
        tally.endSecond();
        right(part, 2, 200);
        others(part, 1, 0, 0, 0);
        assertThat(tally.take().getTotalCount()).isEqualTo(2);
        part.endedNs = 1000;
        tally.closeAll(false, 1000, CAUSE);
        assertThat(seconds()).hasSize(2);
        SecondRow first = seconds().getFirst();
        assertThat(List.of(first.trialId(), first.second())).containsExactly(7, 0);
        assertThat(List.of(first.replied(), first.late(), first.wrong(), first.failed(), first.notSent()))
                .containsExactly(3L, 1L, 2L, 3L, 4L);
        assertThat(decoded(first.responseTimes()).getMaxValue()).isEqualTo(100);
        SecondRow second = seconds().getLast();
        assertThat(second.second()).isEqualTo(1);
        assertThat(List.of(second.replied(), second.late(), second.wrong(), second.failed(), second.notSent()))
                .containsExactly(2L, 1L, 0L, 0L, 0L);
        assertThat(decoded(second.responseTimes()).getMinNonZeroValue()).isEqualTo(200);
        Event.Step step = steps().getFirst();
        assertThat(List.of(step.replied(), step.late(), step.wrong(), step.failed(), step.notSent()))
                .containsExactly(5L, 2L, 2L, 3L, 4L);
        assertThat(decoded(step.responseTimes()).getTotalCount()).isEqualTo(5);
        assertThat(step.lengthNs()).isEqualTo(1000);
        assertThat(step.label()).isEqualTo("window");
        assertThat(tally.counts()).isEqualTo(new Outcomes.Counts(2, 2, 3, 4));
        assertThat(tally.responses().getTotalCount()).isEqualTo(5);
        assertThat(tally.service().getTotalCount()).isEqualTo(5);
        assertThat(tally.service().getMaxValue()).isEqualTo(190);
        assertThat(tally.error().getTotalCount()).isEqualTo(7);
        assertThat(tally.firstFailure()).contains("planted in window");
        assertThat(tally.wrongAnywhere()).isEqualTo(2);
    }

    @Test
    void aPartIsToldWhenItIsOverAndAllOfItsRequestsHaveEnded() {
        Stretch first = part("one", 100);
        Stretch second = part("two", 500);
        first.outcomes.due(1);
        first.endedNs = 500;
        right(second, 1, 50);
        tally.take();
        tally.closeSettled(false);
        assertThat(events).as("one request is still under way").isEmpty();
        first.outcomes.answered(0, true, 0, 0, 40);
        tally.take();
        tally.closeSettled(false);
        assertThat(steps()).extracting(Event.Step::label).containsExactly("one");
        assertThat(steps()).as("the second is not over").hasSize(1);
        second.endedNs = 900;
        tally.closeSettled(false);
        assertThat(steps()).extracting(Event.Step::label).containsExactly("one", "two");
        assertThat(steps()).extracting(Event.Step::step).containsExactly(0, 1);
        assertThat(steps()).extracting(Event.Step::lengthNs).containsExactly(400L, 400L);
        assertThat(tally.countedNs()).isEqualTo(800);
        assertThat(seconds()).isEmpty();
    }

    @Test
    void theStepsOfACountedLoadStandWhereOthersHaveSeconds() throws Exception {
        Stretch dropped = part("round 0", 0);
        dropped.isCounted = false;
        right(dropped, 2, 400);
        others(dropped, 0, 1, 0, 0);
        dropped.outcomes.sent(0, 9);
        dropped.endedNs = 50;
        tally.take();
        tally.closeSettled(true);
        Stretch kept = part("round 1", 50);
        right(kept, 3, 30);
        others(kept, 1, 0, 0, 0);
        kept.outcomes.sent(0, 5);
        kept.outcomes.scenario(77);
        kept.endedNs = 150;
        tally.take();
        tally.closeAll(true, 150, CAUSE);
        assertThat(seconds()).hasSize(1);
        assertThat(seconds().getFirst().replied()).isEqualTo(3);
        assertThat(seconds().getFirst().late()).isEqualTo(1);
        assertThat(steps()).extracting(Event.Step::isCounted).containsExactly(false, true);
        assertThat(decoded(steps().getLast().scenarioTimes()).getMaxValue()).isEqualTo(77);
        // the dropped round is in no figure but that of the wrong replies
        assertThat(tally.responses().getTotalCount()).isEqualTo(3);
        assertThat(tally.responses().getMaxValue()).isEqualTo(30);
        assertThat(tally.service().getTotalCount()).isEqualTo(3);
        assertThat(tally.sendDelay().getTotalCount()).isEqualTo(1);
        assertThat(tally.sendDelay().getMaxValue()).isEqualTo(5);
        assertThat(tally.error().getTotalCount()).isEqualTo(1);
        assertThat(tally.counts()).isEqualTo(new Outcomes.Counts(1, 0, 0, 0));
        assertThat(tally.wrongAnywhere()).isEqualTo(1);
        assertThat(tally.countedNs()).isEqualTo(100);
    }

    /** A service that answered wrongly, late, or in a stretch that does not count has done the work all the same. */
    @Test
    void repliesOfEveryKindAndEveryStretchAreAnswered() {
        Stretch dropped = part("round 0", 0);
        dropped.isCounted = false;
        right(dropped, 2, 400);
        others(dropped, 4, 8, 16, 32);
        dropped.endedNs = 50;
        tally.take();
        assertThat(tally.answered()).isEqualTo(14);
        tally.closeSettled(true);
        assertThat(tally.answered()).as("it has been told").isEqualTo(14);
        Stretch kept = part("round 1", 50);
        right(kept, 100, 30);
        others(kept, 200, 400, 0, 0);
        tally.take();
        assertThat(tally.answered()).isEqualTo(714);
    }

    @Test
    void whatHasNoOutcomeAtTheEndCountsAsFailed() {
        Stretch part = part("window", 200);
        part.outcomes.due(5);
        part.outcomes.entered(300);
        part.outcomes.answered(0, true, 0, 0, 100);
        tally.take();
        part.endedNs = 900;
        tally.closeAll(false, 1000, CAUSE);
        assertThat(tally.counts()).isEqualTo(new Outcomes.Counts(0, 0, 4, 0));
        assertThat(tally.firstFailure()).contains("never ended");
        // one of them entered at 300; of the others nothing is known but that the part began at 200
        assertThat(tally.error().getMinNonZeroValue()).isEqualTo(700);
        assertThat(tally.error().getMaxValue()).isEqualTo(800);
        assertThat(seconds().getFirst().failed()).isEqualTo(4);
        assertThat(steps().getFirst().failed()).isEqualTo(4);
    }

    @Test
    void aPartThatIsCutSaysSoWhereNothingElseFailed() {
        Stretch cut = part("iteration 2", 0);
        cut.isCut = true;
        cut.endedNs = 10;
        tally.closeSettled(true);
        assertThat(tally.firstFailure()).isEqualTo("iteration 2 was not over in time");
        assertThat(steps().getFirst().isCut()).isTrue();
        Stretch later = part("iteration 3", 0);
        others(later, 0, 0, 1, 0);
        later.endedNs = 10;
        tally.closeAll(true, 10, CAUSE);
        assertThat(tally.firstFailure()).isEqualTo("iteration 2 was not over in time");
    }

    @Test
    void theFirstFailureGoesBeforeACut() {
        Stretch cut = part("iteration 1", 0);
        others(cut, 0, 0, 1, 0);
        cut.isCut = true;
        cut.endedNs = 10;
        tally.closeSettled(true);
        assertThat(tally.firstFailure()).contains("planted in iteration 1");
    }

    @Test
    void theLastPartLastsUntilItsLastReply() {
        Stretch part = part("window", 100);
        part.endedNs = 600;
        tally.extendLast(500);
        assertThat(part.endedNs).isEqualTo(600);
        tally.extendLast(850);
        assertThat(part.endedNs).isEqualTo(850);
        assertThat(part.seconds()).isEqualTo(750e-9);
    }

    @Test
    void timeInTheSystemIsHeldAgainstTheTimesThatWereRecorded() {
        assertThat(tally.littlesLaw()).isEqualTo(1);
        Stretch part = part("window", 0);
        part.outcomes.due(3);
        for (int i = 0; i < 2; i++) {
            part.outcomes.entered(0);
            part.outcomes.left(200);
            part.outcomes.answered(0, true, 0, 0, 200);
        }
        part.outcomes.entered(0);
        part.outcomes.left(600);
        part.outcomes.failed(CAUSE, 0, 100);
        part.outcomes.toldTwice();
        tally.take();
        part.endedNs = 1000;
        tally.closeAll(false, 1000, CAUSE);
        // twice 200 and 100 were recorded, twice 200 and 600 spent
        assertThat(tally.littlesLaw()).isEqualTo(0.5);
        assertThat(tally.toldTwice()).isEqualTo(1);
    }

    @Test
    void usersAreCountedWhenSomethingFirstGoesWrong() {
        tally.watch(Outcomes.Counts.NONE, 5);
        assertThat(tally.usersAtFirstFailure()).isZero();
        tally.watch(new Outcomes.Counts(0, 0, 0, 1), 8);
        tally.watch(new Outcomes.Counts(0, 0, 0, 2), 9);
        assertThat(tally.usersAtFirstFailure()).isEqualTo(8);
    }

    @Test
    void aPartIsSettledWhenAllThatWasDueHasEnded() {
        Stretch part = part("window", 0);
        assertThat(part.isSettled()).isTrue();
        right(part, 1, 10);
        others(part, 1, 0, 0, 1);
        assertThat(part.isSettled()).as("its right reply has not been taken").isFalse();
        tally.take();
        assertThat(part.ended()).isEqualTo(3);
        assertThat(part.isSettled()).isTrue();
        assertThat(part.isUntilDone()).isFalse();
        assertThat(Stretch.counted("burst", 3, 5, new Outcomes(1)).isUntilDone())
                .isTrue();
        assertThat(Stretch.counted("burst", 3, 5, new Outcomes(1)).patienceNs).isEqualTo(5);
        part.beganNs = 500_000_000;
        part.endedNs = 2_000_000_000;
        assertThat(part).hasToString("window (1.500 s)");
    }

    /** What was taken in between, as at the half of a window, is told with the rest. */
    @Test
    void whatIsUntoldIsAllThatWasTakenSinceTheLastTelling() {
        Stretch part = part("one", 0);
        right(part, 3, 100);
        tally.take();
        right(part, 2, 200);
        Histogram untold = tally.takeUntold();
        assertThat(untold.getTotalCount()).isEqualTo(5);
        assertThat(tally.takeUntold().getTotalCount()).isZero();
        right(part, 1, 300);
        assertThat(tally.takeUntold().getTotalCount()).isEqualTo(1);
        assertThat(untold.getTotalCount())
                .as("it is not told from the same histogram again")
                .isEqualTo(5);
        assertThat(tally.responses().getTotalCount()).isEqualTo(6);
    }
}
