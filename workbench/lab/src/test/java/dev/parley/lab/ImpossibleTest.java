package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.protocol.Event;
import dev.parley.protocol.ServiceEvent.Served;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What cannot be true of a trial: each check from both sides of its border. */
class ImpossibleTest {
    private static final int CORES = Runtime.getRuntime().availableProcessors();

    /** 5 replied, 4 late, 3 wrong, 2 failed, 1 not sent: 15 due, 12 answered, in two seconds. */
    private static final Event.Finished WHOLE =
            new Event.Finished(1, 2_000_000_000, 0, true, 5, 4, 3, 2, 1, 0, 0, 0, 1, 0, 0, List.of(), "");

    private static final Traffic AGREED = traffic(14, 12, served(14, 12), served(14, 12));

    private static Served served(long begun, long answered) {
        return new Served(begun, answered, 0);
    }

    private static Traffic traffic(long sent, long answered, Served first, Served second) {
        return new Traffic(
                sent,
                answered,
                List.of(
                        new Traffic.Service("m1", first, OptionalLong.of(1), 0, true),
                        new Traffic.Service("m2", second, OptionalLong.of(1), 0, true)));
    }

    private static SecondRow second(int second, long... outcomes) {
        return new SecondRow(1, second, outcomes[0], outcomes[1], outcomes[2], outcomes[3], outcomes[4], new byte[0]);
    }

    private static Event.Step step(String label, boolean isCounted, long lengthNs, long... outcomes) {
        return new Event.Step(
                1,
                0,
                label,
                1,
                1,
                isCounted,
                false,
                lengthNs,
                outcomes[0],
                outcomes[1],
                outcomes[2],
                outcomes[3],
                outcomes[4],
                new byte[0],
                new byte[0]);
    }

    private static List<SecondRow> seconds() {
        return new ArrayList<>(List.of(second(-1, 9, 9, 9, 9, 9), second(0, 3, 2, 1, 1, 1), second(1, 2, 2, 2, 1, 0)));
    }

    private static List<Event.Step> steps() {
        return new ArrayList<>(List.of(
                step("round 0", false, 1_000_000_000, 7, 0, 0, 0, 0),
                step("round 1", true, 1_000_000_000, 5, 4, 3, 2, 1)));
    }

    private static List<String> reasons(
            double ceiling, List<SecondRow> seconds, List<Event.Step> steps, FigureRow... figures) {
        return new Impossible(new Ceiling(ceiling), seconds, steps, WHOLE, List.of(figures), AGREED).reasons();
    }

    @Test
    void aTrialWhoseCountsAgreeIsPossible() {
        assertThat(reasons(12, seconds(), steps())).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    void oneRequestMoreOfAnyOutcomeInASecondIsImpossible(int outcome) {
        long[] more = new long[5];
        more[outcome] = 1;
        List<SecondRow> seconds = seconds();
        seconds.add(second(2, more));
        assertThat(reasons(100, seconds, steps()))
                .containsExactly("impossible: the seconds hold 16 requests, the whole window 15");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    void oneRequestMoreOfAnyOutcomeInAStepIsImpossible(int outcome) {
        long[] more = new long[5];
        more[outcome] = 1;
        List<Event.Step> steps = steps();
        steps.add(step("round 2", true, 1_000_000_000, more));
        assertThat(reasons(100, seconds(), steps))
                .containsExactly("impossible: the steps hold 16 requests, the whole window 15");
    }

    @Test
    void aWindowOfNoLengthHoldsNoRequests() {
        UnaryOperator<Event.Finished> noLength = f -> new Event.Finished(
                1,
                0,
                0,
                true,
                f.replied(),
                f.late(),
                f.wrong(),
                f.failed(),
                f.notSent(),
                0,
                0,
                0,
                1,
                0,
                0,
                List.of(),
                "");
        assertThat(new Impossible(new Ceiling(100), seconds(), steps(), noLength.apply(WHOLE), List.of(), AGREED)
                        .reasons())
                .containsExactly("impossible: 15 requests in a window of no length");
        Event.Finished nothing = new Event.Finished(1, 0, 0, true, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, List.of(), "");
        assertThat(new Impossible(new Ceiling(100), List.of(), List.of(), nothing, List.of(), AGREED).reasons())
                .isEmpty();
        Event.Finished oneNs = new Event.Finished(1, 1, 0, true, 5, 4, 3, 2, 1, 0, 0, 0, 1, 0, 0, List.of(), "");
        assertThat(new Impossible(new Ceiling(100), seconds(), steps(), oneNs, List.of(), AGREED).reasons())
                .isEmpty();
    }

    /** Answered: 5 right, 4 late, 3 wrong, in one second: 12 a second, of which none may go unseen. */
    @Test
    void aStepCannotBeFasterThanTheGenerator() {
        assertThat(reasons(11.9, seconds(), steps()))
                .containsExactly(
                        "impossible: 12 replies/s in the step round 1, over the 12 that the load generator reaches"
                                + " here");
        List<Event.Step> uncounted = steps();
        uncounted.set(0, step("round 0", false, 10_000_000, 7, 0, 0, 0, 0));
        assertThat(reasons(100, seconds(), uncounted))
                .containsExactly(
                        "impossible: 700 replies/s in the step round 0, over the 100 that the load generator reaches"
                                + " here");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void repliesInAStepOfNoLengthAreImpossible(int outcome) {
        long[] one = new long[5];
        one[outcome] = 1;
        List<Event.Step> steps = steps();
        steps.add(step("round 2", false, 0, one));
        assertThat(reasons(100, seconds(), steps))
                .containsExactly("impossible: 1 replies in the step round 2 of no length");
        steps.set(2, step("round 2", false, 0, 0, 0, 0, 4, 5));
        assertThat(reasons(100, seconds(), steps)).isEmpty();
    }

    /** Two clocks count: 5 % over the whole is their difference. */
    @Test
    void servicesCannotUseMoreCoresThanThereAre() {
        assertThat(reasons(
                        100,
                        seconds(),
                        steps(),
                        new FigureRow(1, Metric.CPU_SHARE, "m1", 52 * CORES),
                        new FigureRow(1, Metric.CPU_SHARE, "m2", 53 * CORES),
                        new FigureRow(1, Metric.CPU_PER_REQUEST, FigureRow.SYSTEM, 1e6)))
                .isEmpty();
        assertThat(reasons(
                        100,
                        seconds(),
                        steps(),
                        new FigureRow(1, Metric.CPU_SHARE, "m1", 53 * CORES),
                        new FigureRow(1, Metric.CPU_SHARE, "m2", 53 * CORES)))
                .containsExactly(String.format(
                        java.util.Locale.ROOT, "impossible: the services used %.2f cores of %d", 1.06 * CORES, CORES));
    }

    @Test
    void compilersCannotTakeMoreThanTheServicesThatTheyArePartOf() {
        assertThat(reasons(100, seconds(), steps(), new FigureRow(1, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 105)))
                .isEmpty();
        assertThat(reasons(100, seconds(), steps(), new FigureRow(1, Metric.COMPILING_SHARE, FigureRow.SYSTEM, 105.1)))
                .containsExactly(
                        "impossible: compilers took more processor time than the services that they are part of");
    }

    private static List<String> reasons(Traffic traffic) {
        return new Impossible(new Ceiling(100), seconds(), steps(), WHOLE, List.of(), traffic).reasons();
    }

    @Test
    void aGeneratorThatCountsAReplyTwiceIsFoundOutByTheFirstServiceAndAllBehindIt() {
        assertThat(reasons(traffic(14, 13, served(14, 12), served(14, 12))))
                .containsExactly(
                        "impossible: m1 answered 12 requests, the 13 replies that the load generator counted took 13",
                        "impossible: m2 answered 12 requests, the 13 replies that the load generator counted took 13");
    }

    @Test
    void aServiceThatServesMoreThanWasSentIsImpossible() {
        assertThat(reasons(traffic(14, 12, served(15, 15), served(15, 15))))
                .containsExactly(
                        "impossible: m1 was sent 15 requests, the 14 of the load generator and 0 left over from before"
                                + " make at most 14");
    }

    @Test
    void aServiceBehindTheFirstThatServesAnotherNumberIsImpossible() {
        assertThat(reasons(traffic(14, 12, served(14, 14), served(15, 15))))
                .containsExactly(
                        "impossible: m2 was sent 15 requests, 1 for each of the 14 of m1 and 0 left over from before"
                                + " make at most 14");
        assertThat(reasons(traffic(14, 12, served(14, 14), served(11, 11))))
                .containsExactly(
                        "impossible: m2 answered 11 requests, the 12 replies that the load generator counted took 12");
    }
}
