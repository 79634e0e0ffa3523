package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A run whose study has a target that REST and RPCX meet: what each output says of it. */
class TargetTest {
    @TempDir
    static Path folder;

    private static Report report;

    @BeforeAll
    static void read() {
        report = Report.of(SampleStore.target(folder));
        report.writeTo(folder);
    }

    @Test
    void theTerminalHasALineForEachTechnology() {
        assertThat(report.table().lines())
                .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(100));
        List<String> lines = report.table()
                .lines()
                .dropWhile(line -> !line.startsWith("Target: "))
                .limit(6)
                .toList();
        assertThat(lines.getFirst()).isEqualTo("Target: 300 requests/s, p99 at most 5.4 ms");
        assertThat(lines.get(1)).isEqualTo("line:2 · types:100 · 300 requests/s (open load, poisson)");
        assertThat(lines.get(2))
                .matches("  rest     meets it   p99 \\d\\.?\\d* ms of 5\\.4 ms, \\d+ % to spare; interval .+–.+");
        assertThat(lines.get(3))
                .matches("  grpc     does not   p99 \\d\\.?\\d* ms of 5\\.4 ms, \\d+ % over; interval .+–.+");
        assertThat(lines.get(4)).startsWith("  rpcx     meets it   p99 ");
        assertThat(lines.get(5))
                .isEqualTo("  graphql  does not   rate: 50 % of requests answered in time, at least 95 %;"
                        + " interval 50–50");
    }

    @Test
    void theTerminalSaysWhoFellBehindTheLoad() {
        assertThat(report.table().replaceAll("\\s+", " "))
                .contains("~ graphql, types:100, open:300:poisson: fell behind: 50.0 % of what the load offered was"
                        + " answered in time")
                .doesNotContain("rest, types:100, open:300:poisson: fell behind");
    }

    @Test
    void thePageHasTheAnswersAndCallsNoThroughputTheHighest() throws Exception {
        String page = Files.readString(folder.resolve("report.html"));
        assertThat(page)
                .contains("<h3>Target: 300 requests/s, p99 at most 5.4 ms</h3>")
                .contains("<td>rest</td><td>meets it</td>", "<td>grpc</td><td>does not</td>")
                .contains("<small>as offered</small>", "<small class=\"bad\">fell behind: 50.0 % answered</small>")
                .doesNotContain(">highest</small>");
    }

    @Test
    void theFilesHaveTheAnswersWithTheirFigures() throws Exception {
        JsonNode json = JsonMapper.builder().build().readTree(Files.readString(folder.resolve("summary.json")));
        assertThat(json.get("target").get("rate").asString()).isEqualTo("300");
        assertThat(json.get("target").get("p99").asString()).isEqualTo("5.4ms");
        List<String> answers = new ArrayList<>();
        json.get("targets")
                .forEach(a -> answers.add(a.get("technology").asString() + " "
                        + a.get("answer").asString() + " " + a.get("condition").asString()));
        assertThat(answers)
                .containsExactly("rest meets p99", "grpc does_not p99", "rpcx meets p99", "graphql does_not rate");
        JsonNode conditions = json.get("targets").get(0).get("conditions");
        assertThat(conditions.size()).isEqualTo(2);
        JsonNode p99 = conditions.get(1);
        assertThat(p99.get("limit").asDouble()).isEqualTo(5.4);
        assertThat(p99.get("high").asDouble())
                .isLessThan(5.4)
                .isGreaterThanOrEqualTo(p99.get("value").asDouble());
        assertThat(p99.get("spare").asDouble()).isBetween(0.0, 1.0);
        List<String> lines = Files.readAllLines(folder.resolve("targets.csv"));
        assertThat(lines.getFirst())
                .isEqualTo("technology,topology,message,load,answer,condition,metric,value,unit,low,high,limit,spare,"
                        + "why");
        assertThat(lines).hasSize(5);
        assertThat(lines.get(1))
                .startsWith("rest,line:2,types:100,open:300:poisson,meets,p99,latency_p99,")
                .contains(",ms,", ",5.4,", ",\"p99 ");
        assertThat(lines.get(4))
                .startsWith("graphql,line:2,types:100,open:300:poisson,does_not,rate,success_share,50,%,50,50,95,-9,");
    }

    @Test
    void aStudyWithoutATargetHasNoAnswers(@TempDir Path other) throws Exception {
        Report without = Report.of(SampleStore.compare(other, 2));
        without.writeTo(other);
        JsonNode json = JsonMapper.builder().build().readTree(Files.readString(other.resolve("summary.json")));
        assertThat(json.has("target")).isFalse();
        assertThat(json.get("targets").size()).isZero();
        assertThat(without.table()).doesNotContain("Target: ");
        assertThat(Files.readString(other.resolve("report.html"))).contains(">highest</small>");
        assertThat(other.resolve("targets.csv")).doesNotExist();
    }
}
