package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Metric;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class ReportTest {
    @TempDir
    static Path folder;

    private static Report report;
    private static Report troubled;

    @BeforeAll
    static void readBoth() throws Exception {
        report = Report.of(SampleStore.compare(Files.createDirectory(folder.resolve("well")), 5));
        troubled = Report.of(SampleStore.troubled(Files.createDirectory(folder.resolve("troubled"))));
        report.writeTo(folder.resolve("well"));
        troubled.writeTo(folder.resolve("troubled"));
    }

    /** Two restarts, as of a quick run, have ratios and no verdict; three have both. */
    @Test
    void fewRestartsAreSaidToBeIndicativeAndFewerToHaveNoVerdict() throws Exception {
        Path two = Files.createDirectory(folder.resolve("two"));
        Report ofTwo = Report.of(SampleStore.compare(two, 2));
        ofTwo.writeTo(two);
        assertThat(ofTwo.table().replaceAll("\\s+", " "))
                .contains("Under 5 restarts all figures are indicative, and under 3 there is no verdict.");
        assertThat(Files.readString(two.resolve("report.html"))).contains("2 restarts: indicative, no verdicts");
        Path three = Files.createDirectory(folder.resolve("three"));
        assertThat(Report.of(SampleStore.compare(three, 3)).table().replaceAll("\\s+", " "))
                .contains("Under 5 restarts all figures are indicative.");
        assertThat(report.table()).doesNotContain("indicative");
    }

    @Test
    void summaryCsvHasOneRowATechnologyMessageClientsAndMetricAllFilled() throws Exception {
        List<String> lines = Files.readAllLines(folder.resolve("well/summary.csv"));
        assertThat(lines.getFirst())
                .isEqualTo(
                        "technology,topology,message,clients,metric,value,unit,low,high,restarts,validity,subject,load,empty,tried");
        Set<String> keys = new HashSet<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] cells = line.split(",", -1);
            assertThat(cells).as(line).hasSize(15);
            assertThat(keys.add(String.join(",", cells[0], cells[1], cells[2], cells[3], cells[4])))
                    .as(line)
                    .isTrue();
            double value = Double.parseDouble(cells[5]);
            assertThat(Double.parseDouble(cells[7])).as(line).isLessThanOrEqualTo(value);
            assertThat(Double.parseDouble(cells[8])).as(line).isGreaterThanOrEqualTo(value);
            assertThat(cells[9]).isEqualTo("5");
            assertThat(cells[14]).isEqualTo("5");
        }
        for (String technology : List.of("rest", "grpc", "rpcx")) {
            for (String message : List.of("text:1000", "types:100")) {
                for (String clients : List.of("1", "16")) {
                    for (Metric metric : Metric.values()) {
                        if (!metric.isOptional()) {
                            assertThat(keys)
                                    .contains(String.join(",", technology, "line:5", message, clients, metric.key()));
                        }
                    }
                }
            }
        }
        assertThat(lines).anyMatch(l -> l.startsWith("rest,line:5,text:1000,1,boot_time,") && l.endsWith(",210,5"));
        assertThat(lines)
                .filteredOn(l -> l.contains(",allocated_per_request,"))
                .hasSize(3 * 2 * 2)
                .allMatch(l -> l.contains(",kB,") && l.contains(",system,"));
    }

    /** The entry of a metric is all that the report asks for. */
    @Test
    void aMetricIsShownWhereverItsEntrySaysSo() throws Exception {
        String page = Files.readString(folder.resolve("well/report.html"));
        for (Metric metric : Metric.values()) {
            metric.column().ifPresent(head -> assertThat(report.table()).contains(" " + head));
            metric.section().ifPresent(_ -> assertThat(page).contains("<h3>" + metric.title() + "</h3>"));
            if (metric.isCompared()) {
                assertThat(page).contains("<th scope=\"col\">" + metric.heading() + "</th>");
            }
        }
        assertThat(report.table().replaceAll("\\s+", " "))
                .contains(
                        "Medians over restarts; ok %: the mean. CPU ms: processor time of all services together for one"
                                + " request, just-in-time compilers left out. mem, size, boot: one service; the empty"
                                + " service: mem 51.0 MB, size 0.400 MB, boot 210 ms.");
    }

    @Test
    void detailsCsvHasARowForEachHopAndService() throws Exception {
        List<String> lines = Files.readAllLines(folder.resolve("well/details.csv"));
        assertThat(lines.getFirst())
                .isEqualTo(
                        Files.readAllLines(folder.resolve("well/summary.csv")).getFirst());
        assertThat(lines).anyMatch(l -> l.startsWith("rest,line:5,text:1000,1,hop_mean,") && l.contains(",m1>m2,"));
        for (Metric metric : List.of(Metric.CPU_SHARE, Metric.ALLOCATED_PER_REQUEST)) {
            assertThat(lines)
                    .anyMatch(l -> l.startsWith("rest,line:5,text:1000,1," + metric.key() + ",") && l.contains(",m3,"));
        }
    }

    @Test
    void summaryJsonSaysTheSameAndMore() throws Exception {
        JsonNode json = JsonMapper.builder().build().readTree(Files.readString(folder.resolve("well/summary.json")));
        long rows = Files.readAllLines(folder.resolve("well/summary.csv")).size() - 1L;
        assertThat(json.get("summary").size()).isEqualTo((int) rows);
        assertThat(json.get("run").get("seed").asInt()).isEqualTo(42);
        assertThat(json.get("details").size()).isPositive();
        assertThat(json.get("comparisons").size()).isEqualTo(4 * 4 * 3);
        JsonNode bad = JsonMapper.builder().build().readTree(Files.readString(folder.resolve("troubled/summary.json")));
        assertThat(bad.get("unfinished").asInt()).isEqualTo(6);
        assertThat(bad.get("summary").toString()).doesNotContain("NaN");
    }

    @Test
    void theTableFitsAHundredColumnsAndPrintsEveryTechnology() {
        for (Report one : List.of(report, troubled)) {
            assertThat(one.table().lines())
                    .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(100));
        }
        assertThat(report.table())
                .contains("line:5 · text:1000 · 1 client (closed load)")
                .contains("  rest", "  grpc", "  rpcx")
                .doesNotContain("!", "cold");
        assertThat(troubled.table())
                .contains("! rabbitmq", "a core of the generator was")
                .contains("! trial 6 failed: rest, types:100", "m3 ended with exit code 137")
                .contains("! 6 of 96 planned trials were not run.")
                .contains("300 requests/s (open load, poisson)");
    }

    /** The 99th percentile of 62 requests is the slowest of them. */
    @Test
    void aPercentileOfFewRequestsIsMarked() {
        List<String> lines = troubled.table().lines().toList();
        int few = lines.indexOf("line:5 · text:1000000 · 16 clients (closed load)");
        assertThat(lines.get(few + 2)).containsPattern("^. rest +(\\S+ +)?\\S+ +\\S+ +[\\d.]+\\* ");
        assertThat(troubled.table().replaceAll("\\s+", " "))
                .contains("* Of under 1 000 requests in some restart: a few of them make this percentile, and of"
                        + " under 100 the slowest alone.");
        assertThat(report.table()).doesNotContain("*");
    }

    @Test
    void thePageSaysHowARatioIsMade() throws Exception {
        assertThat(Files.readString(folder.resolve("well/report.html")))
                .containsOnlyOnce(
                        "A ratio is the median of the ratios within each restart, with its 95 % interval, and need"
                                + " not be the quotient of the figures beside it.");
    }

    @Test
    void thePageNeedsNoNetworkAndLetsNothingOutOfARunsText() throws Exception {
        String page = Files.readString(folder.resolve("troubled/report.html"));
        assertThat(page)
                .contains("default-src 'none'")
                .doesNotContain("</script><b>")
                .doesNotContain("Kafka <RPC>");
        assertThat(page).contains("Kafka &lt;RPC&gt; &amp; \"reply\"");
        assertThat(page.split("<script", -1)).hasSize(4);
        assertThat(page.replaceAll("(?s)<script.*?</script>", ""))
                .doesNotContain("src=", "@import", "url(", "http://", "https://");
    }

    @Test
    void thePageSaysHowItWasMeasured() throws Exception {
        String page = Files.readString(folder.resolve("well/report.html"));
        assertThat(page)
                .contains("How this was measured", "./parley compare --quick", "0123456789abcdef", "Temurin 25.0.1+8")
                .contains("-Xmx256m -XX:+UseSerialGC", "governor", "HTTP/1.1, keep-alive", "1 client (closed load)")
                .contains("every trial that was not void was warm")
                .contains("No trial was void.", "No trial was cold.", "A reply counts within")
                .contains("data:text/csv;charset=utf-8,message%2Ctechnology");
        String bad = Files.readString(folder.resolve("troubled/report.html"));
        assertThat(bad)
                .contains("m3 ended with exit code 137", "a core of the generator was", "300 requests/s (open load");
    }

    @Test
    void thePageSaysWhatEachTechnologyAsksOfASystem() throws Exception {
        String page = Files.readString(folder.resolve("well/report.html"));
        assertThat(page)
                .contains("What each technology asks of a system", "each service knows its neighbour's address")
                .contains("<td>no broker</td>", "<td>Jackson 3</td>", "rest: 1 file, 4.20 MB")
                .contains("<td>rest-core</td><td class=\"number\">1.2.3</td><td>Apache-2.0</td>");
    }

    @Test
    void aReportIsTheSameEachTimeItIsMade() throws Exception {
        Path again = Files.createDirectories(folder.resolve("again"));
        Report.of(folder.resolve("well/results.duckdb")).writeTo(again);
        for (String file : List.of(Report.HTML, Report.CSV, Report.JSON)) {
            assertThat(again.resolve(file))
                    .hasSameTextualContentAs(folder.resolve("well").resolve(file));
        }
    }

    @Test
    void aFolderThatCannotBeWrittenIsNamed() throws Exception {
        Path plain = Files.createFile(folder.resolve("plain"));
        assertThatThrownBy(() -> report.writeTo(plain))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("plain");
    }
}
