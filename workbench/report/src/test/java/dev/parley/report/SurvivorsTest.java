package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** REST was cold in some restarts, and its figures are those of the others: what each output makes of it. */
class SurvivorsTest {
    @TempDir
    static Path folder;

    private static Report most;
    private static Report few;

    @BeforeAll
    static void read() throws Exception {
        most = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("most")), 1, 4));
        few = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("few")), 3, 5));
        most.writeTo(folder.resolve("most"));
        few.writeTo(folder.resolve("few"));
    }

    @Test
    void theTerminalsTableSaysHowManyOfHowMany() {
        assertThat(most.table().lines())
                .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(100))
                .filteredOn(line -> line.startsWith("~ rest "))
                .hasSize(4)
                .allSatisfy(line -> assertThat(line).containsPattern("rest +3 of 4 "));
        assertThat(most.table().replaceAll("\\s+", " "))
                .contains("~ rest, text:1000, closed:1: restart 1 is cold: compilers took 34.0 % of the services'"
                        + " processor time (at most 10 %)");
        assertThat(most.table().lines())
                .filteredOn(line -> line.startsWith("  grpc "))
                .hasSize(4)
                .allSatisfy(line -> assertThat(line).containsPattern("grpc +4 "));
        assertThat(few.table().lines())
                .filteredOn(line -> line.startsWith("~ rest "))
                .hasSize(4)
                .allSatisfy(line -> assertThat(line).containsPattern("rest +2 of 5 "));
        assertThat(few.table().replaceAll("\\s+", " "))
                .contains("~ rest, text:1000, closed:1: too few: 2 of 5 restarts");
    }

    /** It was left out of the figures, and of the table too. */
    @Test
    void aVoidTrialMarksItsRowAndIsToldBelowIt(@TempDir Path run) {
        List<String> lines =
                Report.of(SampleStore.swapped(run, 2, 5)).table().lines().toList();
        assertThat(lines)
                .filteredOn(line -> line.startsWith("~ rest "))
                .hasSize(4)
                .allSatisfy(line -> assertThat(line).containsPattern("rest +4 of 5 "));
        int first = lines.indexOf("line:5 · text:1000 · 1 client (closed load)");
        assertThat(lines.subList(first + 2, first + 7))
                .satisfiesExactly(
                        rest -> assertThat(rest).startsWith("~ rest "),
                        grpc -> assertThat(grpc).startsWith("  grpc "),
                        rpcx -> assertThat(rpcx).startsWith("  rpcx "),
                        why -> assertThat(why)
                                .isEqualTo("~ rest, text:1000, closed:1: restart 2 is void: 3 pages were swapped"),
                        end -> assertThat(end).isEmpty());
    }

    @Test
    void thePageSaysItBesideEachFigureAndHoldsSurvivorsOfLessThanHalfAgainstNothing() throws Exception {
        String enough = Files.readString(folder.resolve("most/report.html"));
        assertThat(enough).contains("Of some restarts only: rest (3 of 4).").doesNotContain("Not compared: ");
        assertThat(enough.split(">3 of 4 restarts</small>", -1))
                .as("messages × clients × columns")
                .hasSize(1 + 2 * 2 * 4);
        String page = Files.readString(folder.resolve("few/report.html"));
        assertThat(page.split("<td class=\"cold\"", -1)).hasSize(1 + 2 * 2 * 4);
        assertThat(page)
                .contains(">2 of 5 restarts</small>", ">too few</small>", "Not compared: rest (too few).")
                .doesNotContain("Of some restarts only");
    }

    @Test
    void noVerdictFollowsFromHalfOfTheRestartsOrFewer() throws Exception {
        int[] seen = new int[2];
        for (JsonNode c : comparisons("few")) {
            boolean isOfRest = c.get("technology").asString().equals("rest")
                    || c.get("against").asString().equals("rest");
            seen[isOfRest ? 1 : 0]++;
            if (isOfRest) {
                assertThat(c.get("verdict").asString()).isEqualTo("undecided");
                assertThat(c.get("why").asString()).isEqualTo("2 of 5 restarts count, and more than half must");
                assertThat(c.has("ratio")).isFalse();
            } else {
                assertThat(c.has("why")).isFalse();
            }
        }
        assertThat(seen).containsExactly(16, 32);
        assertThat(comparisons("most")).noneMatch(c -> c.has("why"));
    }

    @Test
    void filesHaveBothNumbers() throws Exception {
        List<String> lines = Files.readAllLines(folder.resolve("few/summary.csv"));
        assertThat(lines)
                .filteredOn(l -> l.startsWith("rest,") && l.contains(",latency_median,"))
                .hasSize(4)
                .allMatch(l -> l.contains(",2,too few: 2 of 5 restarts,") && l.endsWith(",5"));
    }

    private static JsonNode comparisons(String run) throws Exception {
        return JsonMapper.builder()
                .build()
                .readTree(Files.readString(folder.resolve(run + "/summary.json")))
                .get("comparisons");
    }
}
