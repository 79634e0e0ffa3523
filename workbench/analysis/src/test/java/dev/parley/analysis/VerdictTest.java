package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import org.junit.jupiter.api.Test;

class VerdictTest {
    @Test
    void aVerdictIsToldInWords() {
        assertThat(new Verdict(Kind.BETTER, 0)).hasToString("better");
        assertThat(new Verdict(Kind.UNDECIDED, 1)).hasToString("undecided (1 more restart)");
        assertThat(new Verdict(Kind.UNDECIDED, 7)).hasToString("undecided (7 more restarts)");
        assertThat(new Verdict(Kind.UNDECIDED, Verdict.MANY)).hasToString("undecided (1000 or more restarts)");
        assertThat(Verdict.undecided("why")).isEqualTo(new Verdict(Kind.UNDECIDED, 0, "why"));
        assertThat(Verdict.undecided("why")).hasToString("undecided (why)");
    }

    @Test
    void fromTheOtherSideBetterIsWorseAndTheRatioIsItsReciprocal() {
        Comparison comparison = new Comparison(
                "line:2",
                "text:10",
                "closed:1",
                Metric.LATENCY_MEDIAN,
                "rest",
                "grpc",
                new Estimate(2, 1.25, 4),
                0.01,
                0.05,
                0.02,
                true,
                new Verdict(Kind.WORSE, 0));
        Comparison reversed = comparison.reversed();
        assertThat(reversed.ratio()).isEqualTo(new Estimate(0.5, 0.25, 0.8));
        assertThat(reversed.technology()).isEqualTo("grpc");
        assertThat(reversed.against()).isEqualTo("rest");
        assertThat(reversed.verdict().kind()).isEqualTo(Kind.BETTER);
        assertThat(reversed.reversed()).isEqualTo(comparison);
        for (Kind kind : new Kind[] {Kind.EQUIVALENT, Kind.UNDECIDED, Kind.VOID, Kind.COLD, Kind.UNKNOWN}) {
            Comparison other = new Comparison(
                    "line:2",
                    "text:10",
                    "closed:1",
                    Metric.LATENCY_MEDIAN,
                    "rest",
                    "grpc",
                    new Estimate(2, 1.25, 4),
                    0.01,
                    0.05,
                    0.02,
                    true,
                    new Verdict(kind, 3, "why"));
            assertThat(other.reversed().verdict()).isEqualTo(new Verdict(kind, 3, "why"));
        }
    }
}
