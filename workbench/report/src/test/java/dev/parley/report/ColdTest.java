package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Metric;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** REST was cold in every trial, gRPC and RPCX were warm: what each output makes of it. */
class ColdTest {
    @TempDir
    static Path folder;

    private static Report report;

    @BeforeAll
    static void read() {
        report = Report.of(SampleStore.cold(folder));
        report.writeTo(folder);
    }

    @Test
    void theTerminalsTableHasNoColdFigureUnderLoad() {
        List<String> rest =
                report.table().lines().filter(l -> l.startsWith("~ rest ")).toList();
        assertThat(rest).hasSize(4).allSatisfy(line -> {
            List<String> cells = List.of(line.substring(2).trim().split("\\s+"));
            assertThat(cells).hasSize(12);
            // mean, median, p99, rate, success; then bytes out and back; CPU, memory; then size and boot time
            assertThat(cells.subList(1, 6)).containsOnly("cold");
            assertThat(cells.subList(6, 8)).doesNotContain("cold");
            assertThat(cells.subList(8, 10)).containsOnly("cold");
            assertThat(cells.subList(10, 12)).doesNotContain("cold");
        });
        assertThat(report.table().replaceAll("\\s+", " "))
                .contains("Cold trials, in which services were still warming up: rest 20 of 20.")
                .contains("~ rest, text:1000, closed:1: cold: compilers took 34.0 % of the services' processor time");
        assertThat(report.table().lines()).filteredOn(l -> l.contains("grpc")).noneMatch(l -> l.contains(" cold"));
    }

    @Test
    void eachTrialsCompilersAndWarmthAreTold() {
        List<String> lines = report.warmth().lines().toList();
        assertThat(lines).hasSize(1 + 3 * 2 * 2);
        assertThat(lines.getFirst()).isEqualTo("Compilers' share of the services' processor time, restart by restart:");
        assertThat(lines)
                .contains(
                        "  rest text:1000 closed:1: 34.0 % cold, 34.0 % cold, 34.0 % cold, 34.0 % cold, 34.0 % cold",
                        "  grpc types:100 closed:16: 4.0 % warm, 4.0 % warm, 4.0 % warm, 4.0 % warm, 4.0 % warm");
    }

    @Test
    void aComparisonWithAColdSideHasNoRatioAndNoVerdict() throws Exception {
        JsonNode json = JsonMapper.builder().build().readTree(Files.readString(folder.resolve("summary.json")));
        int cold = 0;
        for (JsonNode comparison : json.get("comparisons")) {
            boolean isOfRest = comparison.get("technology").asString().equals("rest")
                    || comparison.get("against").asString().equals("rest");
            if (isOfRest) {
                cold++;
                assertThat(comparison.get("verdict").asString()).isEqualTo("cold");
                assertThat(comparison.has("ratio")).isFalse();
                assertThat(comparison.has("p")).isFalse();
            } else {
                assertThat(comparison.get("verdict").asString()).isNotEqualTo("cold");
                assertThat(comparison.has("ratio")).isTrue();
            }
        }
        assertThat(cold).as("messages × clients × metrics × rivals").isEqualTo(2 * 2 * 4 * 2);
        for (JsonNode trial : json.get("trials")) {
            boolean isOfRest = trial.get("technology").asString().equals("rest");
            assertThat(trial.get("coldReasons").size()).isEqualTo(isOfRest ? 1 : 0);
            assertThat(trial.get("voidReasons").size()).isZero();
        }
    }

    @Test
    void summaryFilesKeepColdFiguresAndSayThatTheyAre() throws Exception {
        List<String> lines = Files.readAllLines(folder.resolve("summary.csv"));
        for (Metric metric : List.of(Metric.LATENCY_MEDIAN, Metric.THROUGHPUT, Metric.CPU_PER_REQUEST)) {
            assertThat(lines)
                    .filteredOn(l -> l.startsWith("rest,") && l.contains("," + metric.key() + ","))
                    .hasSize(4)
                    .allMatch(l -> l.contains(",cold: compilers took 34.0 %"));
        }
        assertThat(lines)
                .filteredOn(l -> l.startsWith("rest,") && l.contains(",boot_time,"))
                .hasSize(4)
                .allMatch(l -> l.contains(",valid,"));
        assertThat(lines).filteredOn(l -> !l.startsWith("rest,")).noneMatch(l -> l.contains("cold: "));
    }

    @Test
    void noClaimOfAPaperIsJudgedByAColdFigure() {
        String validity = report.analysis().summaries().stream()
                .filter(s -> s.technology().equals("rest") && s.metric() == Metric.LATENCY_MEAN)
                .map(dev.parley.analysis.Summary::validity)
                .findFirst()
                .orElseThrow();
        assertThat(PaperRun.decides(validity)).isFalse();
        assertThat(PaperRun.decides("unknown: 7 and 7 requests")).isFalse();
        assertThat(PaperRun.decides("indicative: 3 restarts")).isTrue();
        assertThat(PaperRun.decides("cold start; 3 restarts")).isTrue();
    }

    @Test
    void thePageShowsColdFiguresInGreyBesideNoRatio() throws Exception {
        String page = Files.readString(folder.resolve("report.html"));
        assertThat(page)
                .contains("<span class=\"flag hint\">20 cold trials</span>")
                .contains("rest 20 of 20", "td.cold, td.cold b")
                .contains("compilers took 34.0 % of the services' processor time (at most 10 %)");
        int cells = 0;
        Matcher rows = Pattern.compile("(?s)<tr data-technology=\"(\\w+)\"><th scope=\"row\">.*?</th>(.*?)</tr>")
                .matcher(page.substring(page.indexOf("<table class=\"verdicts\">")));
        while (rows.find()) {
            for (String cell : rows.group(2).split("</td>")) {
                if (rows.group(1).equals("rest")) {
                    cells++;
                    assertThat(cell).startsWith("<td class=\"cold\"").contains(">cold</small>");
                    assertThat(cell).doesNotContain("×", "lowest", "highest", "better", "worse", "equivalent");
                } else {
                    assertThat(cell).doesNotContain("cold");
                }
            }
        }
        assertThat(cells).as("messages × clients × columns").isEqualTo(2 * 2 * 4);
        assertThat(page).as("drawn grey").contains("\"flag\":\"cold: compilers took 34.0 %");
    }
}
