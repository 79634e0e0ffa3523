package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.BadInput;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every published figure against what the same paper says elsewhere; where a paper contradicts itself the row's note says so. */
class PublishedFiguresTest {
    private static final List<PublishedFigure> ZHANG = Paper.named("zhang").figures();
    private static final List<PublishedFigure> KAZANAVICIUS =
            Paper.named("kazanavicius").figures();
    private static final List<PublishedFigure> IWANOWSKI =
            Paper.named("iwanowski").figures();
    private static final List<PublishedFigure> NISWAR = Paper.named("niswar").figures();

    @ParameterizedTest
    @CsvSource({
        "kazanavicius, Table 1, 32",
        "kazanavicius, Table 3, 32",
        "kazanavicius, Table 5, 64",
        "kazanavicius, Table 7, 32",
        "kazanavicius, Table 9, 32",
        "kazanavicius, Table 2, 6",
        "kazanavicius, Table 10, 6",
        "weerasinghe, Table I, 18",
        "niswar, 'V-A, Figure 8', 6",
        "niswar, 'V-A, Figure 11', 5",
        "niswar, 'V-B, Figure 17', 3",
        "iwanowski, '5.2.2, Table 5', 32",
        "iwanowski, '5.2.2, Table 6', 32",
        "iwanowski, '5.3, Table 7', 32",
        "kazanavicius, Table 4, 6",
        "kazanavicius, Table 6, 12",
        "kazanavicius, Table 8, 6",
        "niswar, 'V-A, Figure 9', 6",
        "niswar, 'V-A, Figure 10', 6",
        "niswar, 'V-B, Figure 12', 3",
        "niswar, 'V-B, Figure 14', 3",
        "niswar, 'V-B, Figure 15', 3",
        "zhang, Table 2, 40",
        "zhang, Table 3, 165",
        "zhang, Table 4, 165",
    })
    void everyTableIsWhole(String paper, String place, int count) {
        assertThat(Paper.named(paper).figures())
                .filteredOn(f -> f.place().equals(place) && !f.isDrawn())
                .hasSize(count);
    }

    @Test
    void aFigureIsPositiveOrAChange() {
        for (String name : Paper.NAMES) {
            for (PublishedFigure figure : Paper.named(name).figures()) {
                boolean isChange = figure.metric().endsWith("_change");
                assertThat(figure.value() > 0 || isChange || figure.isDrawn())
                        .as(figure.toString())
                        .isTrue();
                if (figure.metric().equals("success_share")) {
                    assertThat(figure.value()).as(figure.toString()).isLessThanOrEqualTo(100);
                }
                assertThat(figure.unit())
                        .as(figure.toString())
                        .isIn("ms", "1/s", "%", "B", "MB", "MiB", "GB", "clients", "cores", "entries", "users");
            }
        }
    }

    @Test
    void aMeanLiesBetweenTheLeastAndTheMost() {
        Map<String, Map<String, Double>> rows = KAZANAVICIUS.stream()
                .filter(f -> f.place().startsWith("Table") && f.metric().startsWith("latency_"))
                .collect(Collectors.groupingBy(
                        f -> f.technology() + " " + f.message(),
                        Collectors.toMap(PublishedFigure::metric, PublishedFigure::value)));
        assertThat(rows).hasSize(48);
        rows.forEach((row, of) -> {
            assertThat(of.get("latency_mean")).as(row).isBetween(of.get("latency_min"), of.get("latency_max"));
            assertThat(of.get("latency_median")).as(row).isBetween(of.get("latency_min"), of.get("latency_max"));
        });
    }

    @Test
    void whatTheTextSaysOfBestAndWorstLatencyStandsInTheTables() {
        for (PublishedFigure said : KAZANAVICIUS) {
            // the other reading of Kafka repeats the rows of the first, each with a note
            if (!said.place().matches("4\\.[1-5]")
                    || !said.metric().equals("latency_mean")
                    || said.technology().equals("kafka")) {
                continue;
            }
            double printed = KAZANAVICIUS.stream()
                    .filter(f -> f.place().startsWith("Table")
                            && f.technology().equals(said.technology())
                            && f.message().equals(said.message())
                            && f.metric().equals(said.metric()))
                    .findFirst()
                    .orElseThrow()
                    .value();
            assertThat(said.value() == printed)
                    .as(said.toString())
                    .isEqualTo(said.note().isEmpty());
        }
    }

    @Test
    void aTransactionRateFollowsFromRuntimeAndRequests() {
        Map<String, Double> runtimes = values(ZHANG, "grid_runtime");
        values(ZHANG, "grid_tps").forEach((cell, tps) -> {
            double requests = Double.parseDouble(cell.substring(cell.lastIndexOf('x') + 1));
            // an average of rates is not the rate of an average, but close to it
            assertThat(tps * runtimes.get(cell) / 1000 / requests).as(cell).isCloseTo(1, within(0.02));
        });
    }

    @Test
    void changesFollowFromTheirColumnsOrSayThatTheyDoNot() {
        long contradicted = 0;
        for (PublishedFigure figure : ZHANG) {
            if (!figure.metric().endsWith("_change")) {
                continue;
            }
            String base = figure.metric().replace("_change", "");
            String[] pair = figure.technology().split("/");
            double first = values(ZHANG, base).get(pair[0] + " " + figure.load());
            double second = values(ZHANG, base).get(pair[1] + " " + figure.load());
            double change = 100 * (base.equals("grid_runtime") ? 1 - first / second : first / second - 1);
            boolean follows = Math.abs(change - figure.value()) < 0.5;
            assertThat(follows)
                    .as(figure + " against " + change)
                    .isEqualTo(figure.note().isEmpty());
            contradicted += follows ? 0 : 1;
        }
        assertThat(contradicted).isEqualTo(1);
    }

    /** Section 5.5: REST has the smallest request and response together, 357 B. */
    @Test
    void requestAndResponseOfRestAreTogetherWhatTheTextSays() {
        assertThat(KAZANAVICIUS.stream()
                        .filter(f -> f.place().equals("Table 2") && f.metric().startsWith("wire_"))
                        .mapToDouble(PublishedFigure::value)
                        .sum())
                .isEqualTo(357);
    }

    @Test
    void theAbstractsRangesAreThoseOfTheTables() {
        assertThat(ZHANG.stream()
                        .filter(f -> f.metric().equals("grid_runtime_change"))
                        .mapToDouble(PublishedFigure::value)
                        .summaryStatistics())
                .satisfies(s -> assertThat(s.getMin()).isEqualTo(55.9))
                .satisfies(s -> assertThat(s.getMax()).isEqualTo(88.9));
        assertThat(ZHANG.stream()
                        .filter(f -> f.metric().equals("grid_tps_change"))
                        .mapToDouble(PublishedFigure::value)
                        .summaryStatistics())
                .satisfies(s -> assertThat(s.getMin()).isEqualTo(126.9))
                .satisfies(s -> assertThat(s.getMax()).isEqualTo(802.8));
    }

    @Test
    void aRoundsRateFollowsFromItsRuntimeOrSaysThatItDoesNot() {
        for (PublishedFigure tps : ZHANG) {
            if (tps.metric().matches("grid_round_\\d_tps")) {
                double runtime = ZHANG.stream()
                        .filter(f -> f.load().equals(tps.load())
                                && f.metric().equals(tps.metric().replace("tps", "runtime")))
                        .findFirst()
                        .orElseThrow()
                        .value();
                double requests = Double.parseDouble(tps.load().split("x")[1]);
                boolean follows = Math.abs(requests * 1000 / runtime - tps.value()) < 1e-6;
                assertThat(follows).as(tps.toString()).isEqualTo(tps.note().isEmpty());
            }
        }
    }

    /** Section 5.2.2: seven times lower and 6 ms, two times lower and 3 ms; 1150 ms apart. */
    @Test
    void whatTheTextSaysOfHopsStandsInTheTable() {
        assertThat(hop("stand-1", "rest", "line:3", "10/300/60") / hop("stand-1", "grpc", "line:3", "10/300/60"))
                .isBetween(7.0, 8.0);
        assertThat(hop("stand-1", "grpc", "line:3", "5/150/60")).isCloseTo(3, within(0.1));
        assertThat(hop("stand-2", "grpc", "star:3", "2/100/60") - hop("stand-2", "rest", "star:3", "2/100/60"))
                .isCloseTo(1131.6, within(0.01));
    }

    @Test
    void moreRequestsAtOnceTakeLonger() {
        for (PublishedFigure few : NISWAR) {
            if (few.load().equals("burst:100:10") && few.metric().equals("latency_mean")) {
                assertThat(NISWAR)
                        .filteredOn(f -> f.load().equals("burst:500:10")
                                && f.metric().equals("latency_mean")
                                && !f.isDrawn()
                                && f.topology().equals(few.topology())
                                && f.technology().equals(few.technology()))
                        .singleElement()
                        .satisfies(many -> assertThat(many.value()).isGreaterThan(few.value()));
            }
        }
    }

    @Test
    void aRowThatCannotBeReadIsToldByLine() {
        assertThatThrownBy(() ->
                        PublishedFigure.read("figures.csv", "place,metric,value,unit\nTable 1,latency_mean,7;5,ms\n"))
                .isInstanceOf(BadInput.class)
                .hasMessage("figures.csv:2: value: 7;5 (expected: a number, or nothing)");
        assertThatThrownBy(() ->
                        PublishedFigure.read("figures.csv", "place,metric,value,unit\nTable 1,latency_mean,7,5,ms\n"))
                .hasMessage("figures.csv:2: 5 fields (expected: 4, as the header has)");
    }

    private static double hop(String part, String technology, String topology, String load) {
        return IWANOWSKI.stream()
                .filter(f -> f.place().endsWith("Table 5")
                        && f.part().equals(part)
                        && f.technology().equals(technology)
                        && f.topology().equals(topology)
                        && f.load().equals(load))
                .findFirst()
                .orElseThrow()
                .value();
    }

    private static Map<String, Double> values(List<PublishedFigure> figures, String metric) {
        return figures.stream()
                .filter(f -> f.metric().equals(metric))
                .collect(Collectors.toMap(f -> f.technology() + " " + f.load(), PublishedFigure::value));
    }
}
