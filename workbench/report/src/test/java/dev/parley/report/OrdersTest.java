package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.studies.PublishedFigure;
import java.util.List;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private static PaperFigure figure(String technology, String load, double theirs, double ours) {
        PublishedFigure published = new PublishedFigure(
                "Table 1", "", technology, "", "", load, "latency_mean", "", Double.toString(theirs), "ms", "");
        return new PaperFigure(published, "calls", load, new Ours(ours, ours, ours, "5", "valid"));
    }

    /** Both have grpc below rest. With the ratio as a third technology two of three pairs would not agree: −0.33. */
    @Test
    void aRatioOfTwoTechnologiesIsNoTechnology() {
        List<PaperFigure> figures =
                List.of(figure("rest", "a", 10, 20), figure("grpc", "a", 5, 10), figure("rest/grpc", "a", 2, 30));
        assertThat(Orders.of(figures)).isEqualTo("order of technologies: tau 1.00");
        assertThat(Orders.byMetric(figures)).containsExactly(List.of("latency_mean", "1.00", "1"));
    }

    /** Each ratio grows from one load to the other in both. Held against each other they would not agree. */
    @Test
    void conditionsAreOrderedForEachRatioAlone() {
        assertThat(Orders.of(List.of(
                        figure("rest/grpc", "a", 2, 30),
                        figure("rest/grpc", "b", 3, 40),
                        figure("rest/rpcx", "a", 20, 3),
                        figure("rest/rpcx", "b", 30, 4))))
                .isEqualTo("order of conditions: tau 1.00");
    }
}
