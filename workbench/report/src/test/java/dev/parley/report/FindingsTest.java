package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Comparison;
import dev.parley.analysis.Estimate;
import dev.parley.analysis.Verdict;
import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What is said of comparisons made by hand. Figures are their places, and decide nothing. */
class FindingsTest {
    private final List<Comparison> comparisons = new ArrayList<>();
    private Metric metric = Metric.LATENCY_MEDIAN;
    private int restarts = 5;

    private void compare(String technology, String against, Verdict verdict, double ratio, double low, double high) {
        comparisons.add(new Comparison(
                "line:2",
                "types:100",
                "closed:16",
                metric,
                technology,
                against,
                new Estimate(ratio, low, high),
                0.01,
                0.05,
                0.02,
                false,
                verdict));
    }

    private void worse(String technology, String against, double ratio) {
        compare(technology, against, new Verdict(Kind.WORSE, 0), ratio, ratio * 0.9, ratio * 1.1);
    }

    private void alike(String technology, String against) {
        compare(technology, against, new Verdict(Kind.EQUIVALENT, 0), 1.01, 0.99, 1.03);
    }

    private void undecided(String technology, String against, int moreRestarts) {
        compare(technology, against, new Verdict(Kind.UNDECIDED, moreRestarts), 1.12, 0.9, 1.3);
    }

    private Findings findings(String... bestFirst) {
        List<Findings.Ranked> counted = IntStream.range(0, bestFirst.length)
                .mapToObj(i -> new Findings.Ranked(bestFirst[i], new Estimate(i + 1, i + 0.9, i + 1.1)))
                .toList();
        return new Findings(metric, counted, comparisons, restarts);
    }

    @Test
    void thoseThatAreAlikeAreToldFirstAndTheOthersAgainstTheBestOfThem() {
        alike("thrift", "rpcx");
        worse("grpc", "rpcx", 2.6);
        worse("rest", "rpcx", 4);
        worse("grpc", "thrift", 2.5);
        worse("rest", "thrift", 3.9);
        worse("rest", "grpc", 1.6);
        assertThat(findings("rpcx", "thrift", "grpc", "rest").sentence())
                .isEqualTo("Median response time: rpcx and thrift are alike; grpc takes 2.6 times as long as rpcx"
                        + " (2.3 to 2.9), rest 4.0 times (3.6 to 4.4).");
    }

    @Test
    void theOneThatIsAheadOfAllIsCalledTheFastest() {
        worse("grpc", "rpcx", 2.6);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Median response time: rpcx is fastest; grpc takes 2.6 times as long (2.3 to 2.9).");
    }

    /** Comparisons are stored in the order of the technologies, whichever is the better. */
    @Test
    void aComparisonMadeTheOtherWayRoundSaysTheSame() {
        compare("rpcx", "grpc", new Verdict(Kind.BETTER, 0), 0.4, 0.35, 0.5);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Median response time: rpcx is fastest; grpc takes 2.5 times as long (2.0 to 2.9).");
    }

    @Test
    void aCostIsMuchAndNotLong() {
        metric = Metric.CPU_PER_REQUEST;
        worse("grpc", "rpcx", 1.8);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("CPU per request: rpcx needs least; grpc needs 1.8 times as much (1.6 to 2.0).");
    }

    @Test
    void ofThroughputMoreIsBetter() {
        metric = Metric.THROUGHPUT;
        worse("grpc", "rpcx", 0.38);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Throughput: rpcx reaches most; grpc reaches 0.38 times as much (0.34 to 0.42).");
    }

    @Test
    void whereNothingIsDecidedThereIsNoRatioAndWhatWouldDecideIsSaid() {
        undecided("grpc", "rpcx", 7);
        undecided("rest", "rpcx", 11);
        undecided("rest", "grpc", 9);
        Findings findings = findings("rpcx", "grpc", "rest");
        assertThat(findings.isDecided()).isFalse();
        assertThat(findings.sentence())
                .isEqualTo("Median response time: nothing is decided; about 7 to 11 more restarts would decide.");
    }

    @Test
    void twoRestartsHaveNoVerdictHoweverFewMoreItTakes() {
        restarts = 2;
        undecided("grpc", "rpcx", 1);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Median response time: nothing is decided; a verdict takes 3 restarts.");
    }

    @Test
    void whatMoreRestartsDoNotMendIsNamed() {
        compare(
                "grpc",
                "rpcx",
                new Verdict(Kind.UNDECIDED, 0, "a restart without a figure above 0 has no ratio"),
                Double.NaN,
                Double.NaN,
                Double.NaN);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Median response time: nothing is decided; a restart without a figure above 0 has no"
                        + " ratio.");
    }

    @Test
    void whatIsUndecidedStandsBesideWhatIsDecided() {
        undecided("thrift", "rpcx", 1000);
        worse("grpc", "rpcx", 2.6);
        undecided("grpc", "thrift", 3);
        assertThat(findings("rpcx", "thrift", "grpc").sentence())
                .isEqualTo("Median response time: grpc takes 2.6 times as long as rpcx (2.3 to 2.9); thrift is"
                        + " undecided against rpcx (about 1 000 or more restarts would decide).");
    }

    @Test
    void theLeaderIsOneOfWhichSomethingIsDecided() {
        undecided("thrift", "rpcx", 4);
        undecided("grpc", "rpcx", 4);
        worse("grpc", "thrift", 1.5);
        assertThat(findings("rpcx", "thrift", "grpc").sentence())
                .isEqualTo("Median response time: grpc takes 1.5 times as long as thrift (1.4 to 1.7); rpcx is"
                        + " undecided against thrift (about 4 more restarts would decide).");
    }

    @Test
    void tiesThatAreNotTransitiveAreNoGroup() {
        alike("b", "a");
        alike("c", "b");
        worse("c", "a", 1.1);
        assertThat(findings("a", "b", "c").sentence())
                .isEqualTo("Median response time: a and b are alike; c takes 1.1 times as long as a (0.99 to 1.2).");
        comparisons.clear();
        alike("b", "a");
        undecided("c", "b", 2);
        alike("c", "a");
        assertThat(findings("a", "b", "c").sentence())
                .isEqualTo("Median response time: a and b are alike; c is alike with a, and not shown to be with all"
                        + " of these.");
    }

    @Test
    void ofManyTechnologiesTheBestTheNextAndTheLastAreNamed() {
        String[] names = IntStream.rangeClosed(1, 12).mapToObj(i -> "t" + i).toArray(String[]::new);
        for (int i = 1; i < names.length; i++) {
            for (int j = 0; j < i; j++) {
                if (i < 2) {
                    alike(names[i], names[j]);
                } else {
                    worse(names[i], names[j], 1 + i);
                }
            }
        }
        assertThat(findings(names).sentence())
                .isEqualTo("Median response time: t1 and t2 are alike; t3 takes 3.0 times as long as t1 (2.7 to 3.3),"
                        + " 8 lie between, and t12 comes last with 12 times (11 to 13).");
    }

    @Test
    void aLargeGroupIsCounted() {
        String[] names = IntStream.rangeClosed(1, 7).mapToObj(i -> "t" + i).toArray(String[]::new);
        for (int i = 1; i < names.length; i++) {
            for (int j = 0; j < i; j++) {
                alike(names[i], names[j]);
            }
        }
        assertThat(findings(names).sentence()).isEqualTo("Median response time: t1, t2, t3 and 4 more are alike.");
    }

    @Test
    void oneTechnologyHasItsFigure() {
        assertThat(findings("rpcx").sentence()).isEqualTo("Median response time: rpcx has 1.00 ms (0.900 to 1.10).");
        assertThat(findings().sentence()).isEqualTo("Median response time: no figure counts.");
    }

    /** Whoever does not count, such as one that was cold, is no rival. */
    @Test
    void whatDoesNotCountIsNotTold() {
        compare("rest", "rpcx", new Verdict(Kind.COLD, 0), Double.NaN, Double.NaN, Double.NaN);
        compare("kafka", "rpcx", new Verdict(Kind.VOID, 0), Double.NaN, Double.NaN, Double.NaN);
        worse("grpc", "rpcx", 2.6);
        assertThat(findings("rpcx", "grpc").sentence())
                .isEqualTo("Median response time: rpcx is fastest; grpc takes 2.6 times as long (2.3 to 2.9).");
    }
}
