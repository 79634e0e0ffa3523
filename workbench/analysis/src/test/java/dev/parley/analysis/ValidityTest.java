package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.SecondRow;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The limits beyond which a trial is void, from both sides. */
class ValidityTest {
    private static TrialSpec spec(Load load) {
        return new TrialSpec(
                1,
                "rest",
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                load,
                1,
                1,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofNanos(100_000)),
                Duration.ofSeconds(1));
    }

    private static final TrialSpec OPEN = spec(new Load.Open(100, Load.Arrivals.EVEN));

    private static SecondRow second(int second, long replied, long late, long wrong, long failed, long notSent) {
        return new SecondRow(1, second, replied, late, wrong, failed, notSent, new byte[0]);
    }

    private static byte[] nTimes(int n, long value) {
        long[] values = new long[n];
        Arrays.fill(values, value);
        return Encoded.of(values);
    }

    @Test
    void wrongRepliesOfTheWindowAreCountedAndThoseOfTheWarmUpAreNot() {
        assertThat(Validity.reasons(OPEN, List.of(second(-1, 10, 0, 5, 0, 0), second(0, 10, 0, 0, 0, 0)), List.of()))
                .isEmpty();
        assertThat(Validity.reasons(OPEN, List.of(second(0, 10, 0, 1, 0, 0), second(1, 10, 0, 2, 0, 0)), List.of()))
                .containsExactly("3 wrong replies");
    }

    /** One of a thousand may stay unsent; each kind of outcome is among the thousand. */
    @ParameterizedTest
    @CsvSource({
        "600, 200, 199, 1, ''",
        "599, 200, 199, 1, 0.10 % of requests could not be sent (at most 0.1 %)",
        "600, 199, 199, 1, 0.10 % of requests could not be sent (at most 0.1 %)",
        "600, 200, 198, 1, 0.10 % of requests could not be sent (at most 0.1 %)",
        "199, 400, 400, 2, 0.20 % of requests could not be sent (at most 0.1 %)",
        "0, 0, 0, 4, 100.00 % of requests could not be sent (at most 0.1 %)"
    })
    void oneOfAThousandMayStayUnsent(long replied, long late, long failed, long notSent, String reason) {
        List<String> reasons = Validity.reasons(OPEN, List.of(second(0, replied, late, 0, failed, notSent)), List.of());
        assertThat(reasons).isEqualTo(reason.isEmpty() ? List.of() : List.of(reason));
    }

    @Test
    void wrongRepliesAreAmongWhatWasDue() {
        assertThat(Validity.reasons(OPEN, List.of(second(0, 500, 0, 499, 0, 1)), List.of()))
                .containsExactly("499 wrong replies");
    }

    @Test
    void aWindowInWhichNothingWasDueIsVoid() {
        assertThat(Validity.reasons(OPEN, List.of(second(-1, 10, 0, 0, 0, 0), second(0, 0, 0, 0, 0, 0)), List.of()))
                .containsExactly("no request was due");
        assertThat(Validity.reasons(OPEN, List.of(second(0, 0, 0, 0, 3, 0)), List.of()))
                .isEmpty();
    }

    /**
     * Requests of 1 000 ns in a window of 100 000 ns: a hundred for each client; each edge may cut one, so that the
     * border lies at 5 % and 2 % more, or less.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "1 | 100 | \"\"",
                "1 | 106 | \"\"",
                "1 | 94 | \"\"",
                "1 | 108 | Little's law off by 8 %: 1.08 requests in the system, 1 clients",
                "1 | 92 | Little's law off by -8 %: 0.92 requests in the system, 1 clients",
                "4 | 424 | \"\"",
                "4 | 432 | Little's law off by 8 %: 4.32 requests in the system, 4 clients"
            })
    void clientsAreRateTimesTimeInTheSystem(int clients, int requests, String reason) {
        SecondRow window = new SecondRow(1, 0, requests, 0, 0, 0, 0, nTimes(requests, 1000));
        assertThat(Validity.reasons(spec(new Load.Closed(clients)), List.of(window), List.of()))
                .isEqualTo(reason.isEmpty() ? List.of() : List.of(reason));
    }

    /**
     * Requests of 50 ns in 1 000 ns: twenty are right, each edge is 5 %, and 17 are 15 % too few, which is exactly the
     * border.
     */
    @Test
    void theBorderItselfIsAllowed() {
        TrialSpec brief = new TrialSpec(
                1,
                "rest",
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                new Load.Closed(1),
                1,
                1,
                new TrialSpec.Window(Duration.ofSeconds(1), Duration.ofSeconds(2), Duration.ofNanos(1_000)),
                Duration.ofSeconds(1));
        assertThat(Validity.reasons(brief, List.of(new SecondRow(1, 0, 17, 0, 0, 0, 0, nTimes(17, 50))), List.of()))
                .isEmpty();
        assertThat(Validity.reasons(brief, List.of(new SecondRow(1, 0, 16, 0, 0, 0, 0, nTimes(16, 50))), List.of()))
                .hasSize(1);
    }

    @Test
    void edgesHaveTheTimesOfAllKindsOfRequests() {
        // 106 of 1 000 ns: 6 % off, of which an edge of 1 % each is allowed for
        SecondRow row = new SecondRow(1, 0, 10, 0, 0, 96, 0, nTimes(10, 1000));
        HistogramRow others = new HistogramRow(1, HistogramRow.Kind.ERROR, "client", nTimes(96, 1000));
        assertThat(Validity.reasons(spec(new Load.Closed(1)), List.of(row), List.of(others)))
                .isEmpty();
    }

    @Test
    void timesOfRequestsThatWereNoSuccessAreInTheSystemToo() {
        SecondRow half = new SecondRow(1, 0, 40, 20, 0, 40, 0, nTimes(40, 1000));
        TrialSpec one = spec(new Load.Closed(1));
        HistogramRow others = new HistogramRow(1, HistogramRow.Kind.ERROR, "client", nTimes(60, 1000));
        HistogramRow noOutcome = new HistogramRow(1, HistogramRow.Kind.SERVICE, "client", nTimes(60, 1000));
        assertThat(Validity.reasons(one, List.of(half), List.of(others, noOutcome)))
                .isEmpty();
        // 40 of 1 000 ns and 60 of 1 500 ns: 1.3 in the system
        HistogramRow longer = new HistogramRow(1, HistogramRow.Kind.ERROR, "client", nTimes(60, 1500));
        assertThat(Validity.reasons(one, List.of(half), List.of(longer)))
                .containsExactly("Little's law off by 30 %: 1.30 requests in the system, 1 clients");
    }

    /**
     * A mean of 3 000 ns is 3 % at each edge; a sum in place of the mean, or one kind's count alone, would allow far
     * more or less.
     */
    @Test
    void edgesAreAsWideAsTheMeanOfAllRequests() {
        SecondRow replies = new SecondRow(1, 0, 10, 0, 0, 30, 0, nTimes(10, 1000));
        TrialSpec one = spec(new Load.Closed(1));
        // 10 000 + 30 · 1 700 = 61 000 of 100 000: 39 % off, 1.5 % an edge
        assertThat(Validity.reasons(
                        one,
                        List.of(replies),
                        List.of(new HistogramRow(1, HistogramRow.Kind.ERROR, "client", nTimes(30, 1700)))))
                .containsExactly("Little's law off by -39 %: 0.61 requests in the system, 1 clients");
    }

    @Test
    void littlesLawSaysNothingWhereTimesAreMissing() {
        TrialSpec one = spec(new Load.Closed(1));
        assertThat(Validity.reasons(one, List.of(second(0, 50, 0, 0, 0, 0)), List.of()))
                .isEmpty();
        // one time is missing of each kind of outcome in turn
        for (long[] outcome : new long[][] {{11, 0, 0}, {10, 1, 0}, {10, 0, 1}}) {
            SecondRow row = new SecondRow(1, 0, outcome[0], outcome[1], 0, outcome[2], 0, nTimes(10, 1000));
            assertThat(Validity.reasons(one, List.of(row), List.of())).isEmpty();
        }
        // and none is missing
        assertThat(Validity.reasons(one, List.of(new SecondRow(1, 0, 10, 0, 0, 0, 0, nTimes(10, 1000))), List.of()))
                .containsExactly("Little's law off by -90 %: 0.10 requests in the system, 1 clients");
        SecondRow wrong = new SecondRow(1, 0, 10, 0, 1, 0, 0, nTimes(10, 1000));
        assertThat(Validity.reasons(one, List.of(wrong), List.of())).containsExactly("1 wrong replies");
    }
}
