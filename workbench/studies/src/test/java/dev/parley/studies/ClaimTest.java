package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.studies.Judgement.Verdict;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ClaimTest {
    /** Latency of each technology in ms, up to 14 % more or less by its seconds, each in an order of its own. */
    private final Map<String, Measured> latencies = new HashMap<>();

    ClaimTest() {
        latencies.put("rest", measured(10, 3, 37));
        latencies.put("grpc", measured(5, 3, 41));
        latencies.put("rpcx", measured(4.8, 3, 13));
        latencies.put("thrift", measured(1, 2, 7));
    }

    private static Measured measured(double value, int restarts, int order) {
        double[] draws = new double[100];
        for (int i = 0; i < draws.length; i++) {
            draws[i] = value * (0.86 + 0.28 * ((i * order) % 100) / 99.0);
        }
        Map<Integer, Measured.Restart> byRestart = new HashMap<>();
        for (int restart = 1; restart <= restarts; restart++) {
            byRestart.put(restart, new Measured.Restart(value, draws));
        }
        return Measured.of(byRestart, restarts, false);
    }

    private Measured find(FigureQuery cell) {
        return cell.metric().equals("latency")
                ? latencies.getOrDefault(cell.condition("technology"), Measured.missing("not measured: " + cell))
                : Measured.missing("no such metric: " + cell.metric());
    }

    private Judgement judge(String expression) {
        return new Claim("it", "here", "is so", expression, "", "").judge(this::find);
    }

    @Test
    void theSidesOfAComparisonAreToldAsTheyAreWritten() {
        Judgement.Finding more = judge("latency[technology=rest] > latency[technology=grpc]")
                .findings()
                .getFirst();
        assertThat(more.left()).isEqualTo(10);
        assertThat(more.right()).isEqualTo(5);
        assertThat(more.ratio()).isEqualTo(2);
        assertThat(more.why()).startsWith("ratio 2.00");
        Judgement.Finding less = judge("latency[technology=grpc] < latency[technology=rest]")
                .findings()
                .getFirst();
        assertThat(less.left()).isEqualTo(5);
        assertThat(less.ratio()).isEqualTo(0.5);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            latency[technology=grpc] < latency[technology=rest]                            | HOLDS
            latency[technology=rest] > latency[technology=grpc]                            | HOLDS
            latency[technology=rest] < latency[technology=grpc]                            | DOES_NOT_HOLD
            not latency[technology=rest] < latency[technology=grpc]                        | HOLDS
            latency[technology=rpcx] < latency[technology=grpc]                            | NOT_DECIDED
            not latency[technology=rpcx] < latency[technology=grpc]                        | NOT_DECIDED
            latency[technology=thrift] < latency[technology=rest]                          | NOT_DECIDED
            latency[technology=kafka] < latency[technology=rest]                           | NOT_DECIDED
            size[technology=grpc] < latency[technology=rest]                               | NOT_DECIDED
            latency[technology=grpc] * 3 < latency[technology=rest]                        | DOES_NOT_HOLD
            latency[technology=grpc] < 0.9 * latency[technology=rest]                      | HOLDS
            (latency[technology=grpc] + 1) * 1 < latency[technology=rest] - 1              | HOLDS
            (latency[technology=grpc] < 6 and latency[technology=rest] > 6)                | HOLDS
            latency[technology=grpc] < 4 or latency[technology=rest] > 6                   | HOLDS
            latency[technology=kafka] < 4 or latency[technology=rest] > 6                  | HOLDS
            latency[technology=kafka] < 4 and latency[technology=rest] < 6                 | DOES_NOT_HOLD
            latency[technology=kafka] < 4 and latency[technology=rest] > 6                 | NOT_DECIDED
            similar(latency[technology=grpc], latency[technology=rpcx], 1.5)               | HOLDS
            similar(latency[technology=grpc], latency[technology=rest], 1.5)               | DOES_NOT_HOLD
            similar(latency[technology=grpc], latency[technology=rpcx], 1.05)              | NOT_DECIDED
            latency[technology=grpc] < min(latency[technology=rest], 20)                   | HOLDS
            latency[technology=rest] > max(latency[technology=grpc], latency[technology=rpcx]) | HOLDS
            every t in {grpc, rpcx}: latency[technology=@t] < latency[technology=rest]     | HOLDS
            every t in {grpc, kafka}: latency[technology=@t] < latency[technology=rest]    | NOT_DECIDED
            every t in {rest, kafka}: latency[technology=@t] < latency[technology=grpc]    | DOES_NOT_HOLD
            every t in {rest, kafka}: latency[technology=@t] < 3                           | DOES_NOT_HOLD
            some t in {rest, grpc}: latency[technology=@t] < 6                             | HOLDS
            most t in {rest, grpc, rpcx}: latency[technology=@t] < 6                       | HOLDS
            most t in {rest, grpc, kafka, rabbitmq}: latency[technology=@t] < 6            | NOT_DECIDED
            latency[technology=rest] <= latency[technology=grpc]                           | DOES_NOT_HOLD
            latency[technology=grpc] <= latency[technology=rest]                           | HOLDS
            latency[technology=grpc] <= latency[technology=grpc]                           | HOLDS
            latency[technology=grpc] >= latency[technology=grpc]                           | HOLDS
            latency[technology=grpc] < latency[technology=grpc]                            | NOT_DECIDED
            latency[technology=rpcx] <= latency[technology=grpc]                           | NOT_DECIDED
            every t in {grpc, rpcx}, u in {rest}: latency[technology=@t] < latency[technology=@u] | HOLDS
            2 of t in {grpc, rpcx, rest}: latency[technology=@t] < 6                       | HOLDS
            3 of t in {grpc, rpcx, rest}: latency[technology=@t] < 6                       | DOES_NOT_HOLD
            2 of t in {grpc, kafka, rest}: latency[technology=@t] < 6                      | NOT_DECIDED
            4 of t in {grpc, rpcx}, u in {rest, kafka}: latency[technology=@t] < latency[technology=@u] | NOT_DECIDED
            every t in {grpc}: every u in {rest}: latency[technology=@t] < latency[technology=@u] | HOLDS
            """)
    void aVerdictHasThreeValues(String expression, Verdict expected) {
        assertThat(judge(expression).verdict()).isEqualTo(expected);
    }

    @Test
    void whatIsMissingIsNamed() {
        assertThat(judge("latency[technology=kafka] < latency[technology=rest]").findings())
                .singleElement()
                .satisfies(f -> assertThat(f.why()).isEqualTo("not measured: latency[technology=kafka]"));
        assertThat(judge("latency[technology=thrift] < latency[technology=rest]")
                        .findings())
                .singleElement()
                .satisfies(f -> assertThat(f.why()).isEqualTo("2 restarts of 3 that a verdict needs"));
    }

    @Test
    void theIntervalOfTheRatioIsTold() {
        assertThat(judge("latency[technology=grpc] < latency[technology=rest]").findings())
                .singleElement()
                .satisfies(f -> {
                    assertThat(f.ratio()).isEqualTo(0.5);
                    assertThat(f.low()).isLessThanOrEqualTo(0.5);
                    assertThat(f.high()).isBetween(0.5, 0.99);
                });
    }

    /** The ratio is 1.5, and from 1.25 on by its draws: by three restarts from 0.92 on, by ten from 1.3. */
    @Test
    void whatFewRestartsDecideIsIndicative() {
        String claim = "latency[technology=grpc] * 3 < latency[technology=rest]";
        Judgement few = judge(claim);
        assertThat(few.verdict()).isEqualTo(Verdict.DOES_NOT_HOLD);
        assertThat(few.isIndicative()).isTrue();
        assertThat(few.words()).isEqualTo("does not hold (indicative)");
        assertThat(few.findings().getFirst().words()).isEqualTo("does not hold (indicative)");
        assertThat(judge("not " + claim).words()).isEqualTo("holds (indicative)");
        assertThat(judge(claim + " or latency[technology=grpc] < latency[technology=rest]")
                        .words())
                .as("decided by the other side, which is far from its border")
                .isEqualTo("holds in 1 of 2");
        assertThat(judge("latency[technology=kafka] < 1").isIndicative()).isFalse();
        latencies.put("rest", measured(10, 10, 37));
        latencies.put("grpc", measured(5, 10, 41));
        assertThat(judge(claim).words()).isEqualTo("does not hold");
    }

    /** "Holds" beside "2 of 4 hold, 2 do not" said two things of one claim. */
    @Test
    void aClaimOfSeveralComparisonsSaysInHowManyItHolds() {
        String each = " t in {rest, grpc, rpcx, kafka}: latency[technology=@t] < 6";
        assertThat(judge("2 of" + each).words()).isEqualTo("holds in 2 of 4 (indicative)");
        assertThat(judge("every" + each).words()).isEqualTo("does not hold in 1 of 4");
        assertThat(judge("3 of" + each).words()).isEqualTo("not decided here");
        assertThat(judge("latency[technology=rest] < 6").words()).isEqualTo("does not hold");
    }

    @Test
    void aComparisonBehindANotHoldsWhereItselfDoesNot() {
        Judgement denied = judge("every t in {rest, kafka}: not latency[technology=@t] < latency[technology=grpc]");
        assertThat(denied.findings())
                .extracting(Judgement.Finding::verdict)
                .containsExactly(Verdict.HOLDS, Verdict.NOT_DECIDED);
        assertThat(denied.findings().getFirst().what()).startsWith("not latency[technology=rest] < ");
        assertThat(judge("not (latency[technology=rest] < 6 and latency[technology=grpc] < 1)")
                        .words())
                .isEqualTo("holds in 2 of 2");
    }

    @Test
    void swappingTwoTechnologiesTurnsTheVerdict() {
        String claim = "latency[technology=grpc] < latency[technology=rest]";
        assertThat(judge(claim).verdict()).isEqualTo(Verdict.HOLDS);
        Measured kept = latencies.put("rest", latencies.getOrDefault("grpc", Measured.missing("")));
        latencies.put("grpc", kept == null ? Measured.missing("") : kept);
        assertThat(judge(claim).verdict()).isEqualTo(Verdict.DOES_NOT_HOLD);
    }

    @Test
    void aClaimThatNothingDecidesIsNotDecided() {
        assertThat(new Claim("it", "here", "is so", "", "of architecture", "")
                        .judge(this::find)
                        .verdict())
                .isEqualTo(Verdict.NOT_DECIDED);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            latency                                       | c: the end of latency (expected: <, <=, > or >=)
            latency[colour=red] < 1                       | c: =red] < 1 at 15 (expected: each once of load, message, part, subject, technology, topology)
            latency[technology=] < 1                      | c: ] < 1 at 20 (expected: a value)
            latency < 1 latency                           | c: latency at 13 (expected: the end)
            mean(latency, 1) < 2                          | c: (latency, 1) < 2 at 5 (expected: min or max before ()
            similar(latency, 2, 1)                        | c: the end of similar(latency, 2, 1) (expected: a factor above 1)
            every t of {a}: latency < 1                   | c: of {a}: latency < 1 at 9 (expected: in)
            3 of t in {a, b}: latency < 1                 | c: 3 of 2 (expected: 1 to 2)
            latency < 1.2.3                               | c: the end of latency < 1.2.3 (expected: a number)
            """)
    void whatCannotBeReadIsToldWithItsPlace(String expression, String message) {
        assertThatThrownBy(() -> ExpressionParser.statement("c", expression))
                .isInstanceOf(BadInput.class)
                .hasMessage(message);
    }

    private Judgement.Finding finding(String expression) {
        return judge(expression).findings().getFirst();
    }

    /** gRPC has 5, REST 10, RPCX 4.8. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            latency[technology=grpc] + 3                                                | 8
            latency[technology=grpc] - 3                                                | 2
            latency[technology=grpc] * 3                                                | 15
            latency[technology=rest] / latency[technology=grpc]                         | 2
            min(latency[technology=grpc], latency[technology=rest])                     | 5
            min(latency[technology=rest], latency[technology=grpc])                     | 5
            max(latency[technology=grpc], latency[technology=rest])                     | 10
            max(latency[technology=rest], latency[technology=grpc], 2)                  | 10
            2 + 3 * latency[technology=grpc]                                            | 17
            """)
    void aFigureIsComputedAsItIsWritten(String figure, double expected) {
        assertThat(finding(figure + " < 1000").left()).isEqualTo(expected);
    }

    private static Measured wide(double value, double low, double high) {
        Map<Integer, Measured.Restart> byRestart = new HashMap<>();
        for (int restart = 1; restart <= 3; restart++) {
            byRestart.put(restart, new Measured.Restart(value, new double[] {low, high}));
        }
        return Measured.of(byRestart, 3, false);
    }

    @Test
    void whatHoldsTheBorderIsToldWithTheBorderThatItHolds() {
        latencies.put("wide", wide(1, 0.5, 2));
        latencies.put("low", wide(1, 0.5, 1.1));
        latencies.put("high", wide(1, 0.9, 2));
        assertThat(finding("similar(latency[technology=low], 1, 1.5)").why())
                .isEqualTo("ratio 1.00, 95 % from 0.500 to 1.10, which holds the border of 0.667");
        assertThat(finding("similar(latency[technology=high], 1, 1.5)").why())
                .endsWith("which holds the border of 1.50");
        assertThat(finding("similar(latency[technology=wide], 1, 1.5)").why())
                .endsWith("which holds the border of 0.667");
        assertThat(finding("latency[technology=wide] < 1").why()).endsWith("which holds the border of 1.00");
        assertThat(finding("latency[technology=wide] <= 1").why()).endsWith("which holds the border of 1.05");
        assertThat(finding("latency[technology=wide] > 1").why()).endsWith("which holds the border of 1.00");
        assertThat(finding("latency[technology=wide] >= 1").why()).endsWith("which holds the border of 0.952");
    }

    @Test
    void figuresBelowNothingHaveNoRatioThatDecides() {
        latencies.put("none", wide(0, 0, 0));
        latencies.put("under", wide(-1, -1, -1));
        String none = "a ratio of figures that are not above nothing";
        assertThat(finding("latency[technology=under] < 1").why()).isEqualTo(none);
        assertThat(finding("1 < latency[technology=under]").why()).isEqualTo(none);
        assertThat(finding("1 < latency[technology=none]").why()).isEqualTo("a division by nothing");
        assertThat(finding("latency[technology=none] < 1").why()).isEqualTo("ratio 0.00, 95 % from 0.00 to 0.00");
    }

    @Test
    void aFigureOfNothingIsLessThanAnyAboveIt() {
        latencies.put("none", wide(0, 0, 0));
        latencies.put("hardly", wide(0.1, 0, 0.2));
        assertThat(judge("latency[technology=none] < 1").verdict()).isEqualTo(Verdict.HOLDS);
        assertThat(judge("latency[technology=none] <= 1").verdict()).isEqualTo(Verdict.HOLDS);
        assertThat(judge("latency[technology=hardly] < 1").verdict()).isEqualTo(Verdict.HOLDS);
        assertThat(judge("latency[technology=none] > 1").verdict()).isEqualTo(Verdict.DOES_NOT_HOLD);
        assertThat(judge("similar(latency[technology=none], 1, 2)").verdict()).isEqualTo(Verdict.DOES_NOT_HOLD);
    }

    @Test
    void claimsAreReadFromTheirTable() {
        String header = "id,place,sentence,expression,note,beside\n";
        assertThat(Claim.read("claims.csv", header + "a,5.1,It is fast.,latency < 1,,\nb,5.2,It is nice.,,taste,a\n"))
                .containsExactly(
                        new Claim("a", "5.1", "It is fast.", "latency < 1", "", ""),
                        new Claim("b", "5.2", "It is nice.", "", "taste", "a"));
        assertThatThrownBy(() -> Claim.read("claims.csv", header + "a,5.1,,latency < 1,,\n"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("sentence");
        assertThatThrownBy(() -> Claim.read("claims.csv", header + "a,5.1,It is fast.,,,\n"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("one, or a note that says why there is none");
        assertThatThrownBy(() -> Claim.read("claims.csv", header + "a,5.1,It is fast.,latency,,\n"))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("claims.csv:2");
    }
}
