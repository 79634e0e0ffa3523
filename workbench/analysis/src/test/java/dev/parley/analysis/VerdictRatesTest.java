package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How often two invented technologies are told apart or called equivalent, by how far they are apart and how much their
 * restarts differ: the tables of docs/decisions/0020-equivalence-needs-a-test.md, of {@code -Dparley.long=true}.
 */
class VerdictRatesTest {
    private static final int CONTESTS = Boolean.getBoolean("parley.long") ? 2_000 : 200;

    /** The nominal rate is one in twenty; so much more is what chance makes of it in one case of a thousand. */
    private static final double MAX = 0.05 + 3.1 * Math.sqrt(0.05 * 0.95 / CONTESTS);

    private record Row(int restarts, double spread, double apart) {}

    private static final Map<Row, Map<Kind, Integer>> ROWS = new HashMap<>();

    private static Map<Kind, Integer> verdicts(int restarts, double spread, double apart) {
        return ROWS.computeIfAbsent(
                new Row(restarts, spread, apart),
                row -> verdicts(row.restarts(), row.spread(), row.apart(), new EnumMap<>(Kind.class)));
    }

    private static Map<Kind, Integer> verdicts(int restarts, double spread, double apart, Map<Kind, Integer> counts) {
        SplittableRandom random = new SplittableRandom(1_000 * restarts + Math.round(10_000 * spread * apart));
        for (int i = 0; i < CONTESTS; i++) {
            Sample first = ContestTest.synthetic(random, 10 * apart, restarts, spread);
            Sample second = ContestTest.synthetic(random, 10, restarts, spread);
            Contest.Result result = new Contest(Metric.LATENCY_MEDIAN, i)
                    .of(new TreeMap<>(Map.of("a", first, "b", second)))
                    .getFirst();
            counts.merge(result.verdict().kind(), 1, Integer::sum);
        }
        System.out.printf(
                Locale.ROOT,
                "| %d | %.0f %% | %.2f | %.1f | %.1f | %.1f |%n",
                restarts,
                100 * spread,
                apart,
                percent(counts, Kind.EQUIVALENT),
                percent(counts, Kind.BETTER) + percent(counts, Kind.WORSE),
                percent(counts, Kind.UNDECIDED));
        return counts;
    }

    private static double percent(Map<Kind, Integer> counts, Kind kind) {
        return 100.0 * counts.getOrDefault(kind, 0) / CONTESTS;
    }

    @ParameterizedTest
    @CsvSource({"3, 0.02", "3, 0.1", "3, 0.3", "5, 0.02", "5, 0.1", "5, 0.3", "10, 0.02", "10, 0.1", "10, 0.3"})
    void equalsAreToldApartInAtMostOneOfTwentyContests(int restarts, double spread) {
        Map<Kind, Integer> counts = verdicts(restarts, spread, 1);
        assertThat(percent(counts, Kind.BETTER) + percent(counts, Kind.WORSE)).isLessThanOrEqualTo(100 * MAX);
        assertThat(counts).doesNotContainKeys(Kind.VOID, Kind.COLD);
    }

    /** The band of equality was once as wide as the noise: the noisier the machine, the more was equivalent. */
    @ParameterizedTest
    @CsvSource({"3, 0.3", "5, 0.1", "5, 0.3", "10, 0.1", "10, 0.3"})
    void aNoisyMachineCallsNothingEquivalent(int restarts, double spread) {
        Map<Kind, Integer> counts = verdicts(restarts, spread, 1);
        assertThat(percent(counts, Kind.EQUIVALENT)).isLessThanOrEqualTo(0.5);
        assertThat(percent(counts, Kind.UNDECIDED)).isGreaterThanOrEqualTo(100 - 0.5 - 100 * MAX);
    }

    /** What is 5 % apart lies on the border. */
    @ParameterizedTest
    @CsvSource({"3, 0.01", "5, 0.01", "10, 0.01", "3, 0.03", "5, 0.03", "10, 0.03"})
    void whatIsOnTheBorderIsEquivalentInAtMostOneOfTwentyContests(int restarts, double spread) {
        assertThat(percent(verdicts(restarts, spread, 1.05), Kind.EQUIVALENT)).isLessThanOrEqualTo(100 * MAX);
    }

    @ParameterizedTest
    @CsvSource({"3, 0.01", "5, 0.01", "10, 0.01", "3, 0.03", "5, 0.03", "10, 0.03"})
    void whatIsTenPercentApartIsNotEquivalent(int restarts, double spread) {
        assertThat(percent(verdicts(restarts, spread, 1.1), Kind.EQUIVALENT)).isLessThanOrEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({"10, 0.02", "10, 0.01", "5, 0.01"})
    void equalsOfAQuietMachineAreEquivalentInAtLeast95Of100(int restarts, double spread) {
        assertThat(percent(verdicts(restarts, spread, 1), Kind.EQUIVALENT)).isGreaterThanOrEqualTo(95);
    }
}
