package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Redrawn;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Paper;
import dev.parley.studies.Scale;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PaperReportTest {
    private static final List<String> HERE = List.of("rest", "grpc", "rpcx");
    private static final List<Sitting> SITTINGS = List.of(new Sitting(
            java.time.Instant.parse("2026-01-02T08:00:00Z"),
            java.time.Instant.parse("2026-01-02T09:58:00Z"),
            "0123456789ab",
            "./parley reproduce own --for 2h"));
    private static final String CLAIM = "%s,1,It is.,%s,\n";

    @TempDir
    static Path stores;

    /** Samples by their number of restarts: each takes seconds to make and to analyse, and nothing changes it. */
    private static final Map<Integer, Analysis> ANALYSES = new java.util.HashMap<>();

    @TempDir
    Path folder;

    private final Map<String, String> files = new java.util.LinkedHashMap<>(Map.of(
            "paper.yaml",
            """
            paper: own
            title: A <paper>
            authors: Somebody
            year: 2026
            published: somewhere
            conditions: {few: [closed:1], both: [closed:1, closed:16]}
            criteria:
              - {criterion: Speed, shows: median, figure: "latency_median[message=text:1000, load=closed:1]", unit: ms}
              - {criterion: Architecture, shows: what is in it, fact: components}
            curves:
              - {place: Figure 9, about: A curve, metric: latency_median, unit: ms, across: amount, axis: clients, panels: [message], lines: [technology]}
            metrics: {gain: "100 * (latency_median[technology=@first] / latency_median[technology=@second] - 1)"}
            parts: [{part: one, place: all of it, about: a test}]
            """,
            "one.yaml",
            """
            technologies: [rest, grpc, rpcx, kafka]
            messages: [text:1000, types:100]
            loads: [closed:1, closed:16]
            restarts: 5
            """,
            "figures.csv",
            """
            place,technology,message,load,metric,value,unit,note
            Table 1,rest,text:1000,few,latency_median,7.5,ms,
            Table 1,grpc,text:1000,few,latency_median,6.5,ms,a note
            Table 1,rpcx,text:1000,both,latency_median,5.5,ms,
            Table 1,kafka,text:1000,few,latency_median,8.5,ms,
            Table 2,grpc/rest,text:1000,few,gain,-13,%,
            Table 3,,,,planned_cores,2,cores,
            Table 4,rest,text:1000,few,installed_size,1000,B,
            """,
            "claims.csv",
            "id,place,sentence,expression,note\n"));

    private PaperReport report(int restarts, String claims) throws IOException {
        return report(analysis(restarts), Optional.empty(), claims);
    }

    private PaperReport report(Analysis analysis, Optional<String> stored, String claims) throws IOException {
        files.merge("claims.csv", claims, String::concat);
        for (Map.Entry<String, String> file : files.entrySet()) {
            Files.writeString(folder.resolve(file.getKey()), file.getValue());
        }
        Paper paper = Paper.read(folder);
        return PaperReport.of(new PaperRun(
                paper,
                Scale.PAPER,
                paper.parts().stream()
                        .map(part -> new PaperRun.PartRun(
                                part,
                                part.study(HERE, Scale.PAPER),
                                Optional.of(analysis),
                                String.join("; ", part.missing(HERE)),
                                stored))
                        .toList(),
                SITTINGS));
    }

    private static Analysis analysis(int restarts) {
        return ANALYSES.computeIfAbsent(restarts, n -> {
            try {
                return Report.of(SampleStore.compare(Files.createDirectory(stores.resolve("" + n)), n))
                        .analysis();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private static double median(String technology) {
        return analysis(5).summaries().stream()
                .filter(s -> s.technology().equals(technology)
                        && s.metric() == Metric.LATENCY_MEDIAN
                        && s.message().equals("text:1000")
                        && s.load().equals(new Load.Closed(1)))
                .map(Summary::estimate)
                .findFirst()
                .orElseThrow()
                .value();
    }

    private static Map<Integer, Redrawn.Restart> byRestart(String technology) {
        return analysis(5)
                .redrawn(technology, new Situation("line:5", "text:1000", new Load.Closed(1)), Metric.LATENCY_MEDIAN)
                .orElseThrow()
                .byRestart();
    }

    private static String of(String technology) {
        return "latency_median[technology=" + technology + "; message=text:1000; load=few]".replace(';', ',');
    }

    private static String claim(String id, String expression) {
        return String.format(CLAIM, id, "\"" + expression + "\"");
    }

    @Test
    void whatIsSoHoldsAndAPlantedFalsehoodDoesNot() throws IOException {
        String fast = median("rest") < median("grpc") ? "rest" : "grpc";
        String slow = fast.equals("rest") ? "grpc" : "rest";
        PaperReport report =
                report(5, claim("so", of(fast) + " < " + of(slow)) + claim("false", of(fast) + " > " + of(slow)));
        assertThat(report.counts())
                .containsEntry(Verdict.HOLDS, 1L)
                .containsEntry(Verdict.DOES_NOT_HOLD, 1L)
                .containsEntry(Verdict.NOT_DECIDED, 0L);
    }

    @Test
    void aRunByOtherRulesOrOfAnotherPlanDecidesNothing() throws IOException {
        String claim = claim("so", of("rest") + " < 1000");
        Analysis older = Report.of(SampleStore.comparedBy("1", Files.createDirectory(folder.resolve("older")), 5))
                .analysis();
        PaperReport byOtherRules = report(older, Optional.empty(), claim);
        assertThat(byOtherRules.counts()).containsEntry(Verdict.NOT_DECIDED, 1L);
        byOtherRules.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not decided: measured by other rules (1; here " + dev.parley.model.Rules.VERSION + ")");
        assertThat(Files.readAllLines(folder.resolve(PaperReport.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 1,rest"))
                .singleElement()
                .satisfies(row ->
                        assertThat(row.split(",")[12]).as("a ratio to theirs").isEmpty());

        files.put("claims.csv", "id,place,sentence,expression,note\n");
        PaperReport ofAnotherPlan = report(analysis(5), Optional.of("a digest"), claim);
        assertThat(ofAnotherPlan.counts()).containsEntry(Verdict.NOT_DECIDED, 1L);
        ofAnotherPlan.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not decided: measured by another plan than the one that stands here");
    }

    /** A figure of two technologies took the validity of whichever was named first: "indicative" hid "cold". */
    @Test
    void aRatioIsAsGoodAsTheWorseOfItsSides() throws IOException {
        Analysis cold = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("cold")), 3, 3))
                .analysis();
        report(cold, Optional.empty(), "").writeTo(folder);
        assertThat(Files.readAllLines(folder.resolve(PaperReport.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 2,grpc/rest"))
                .singleElement()
                .satisfies(
                        row -> assertThat(row).contains(",cold: compilers took").doesNotContain("indicative"));
    }

    @Test
    void pointsThatDecideNothingAreGrey() throws IOException {
        Analysis cold = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("cold")), 3, 3))
                .analysis();
        PaperReport report = report(cold, Optional.empty(), "");
        String curve = new CurvePage(report.run(), report.run().paper().curves().getFirst()).html();
        assertThat(circles(curve)).as("technologies × messages × loads").hasSize(3 * 2 * 2);
        assertThat(circles(curve))
                .filteredOn(circle -> circle.contains("class=open"))
                .hasSize(4)
                .allSatisfy(circle ->
                        assertThat(circle).contains("<title>rest at ", "; cold: compilers took", "fill:var(--soft)"));
        assertThat(circles(curve))
                .filteredOn(circle -> circle.contains("<title>rest"))
                .hasSize(4);
        assertThat(curve).as("no line through them").contains("points=\"\"");
        report.writeTo(folder);
        String page = Files.readString(folder.resolve(PaperReport.HTML));
        assertThat(page.substring(page.indexOf("svg class=\"scatter sides"), page.indexOf("svg class=\"scatter order")))
                .contains("<circle class=open")
                .contains("; cold: compilers took");
    }

    /** Ours, without the paper's own. */
    private static List<String> circles(String html) {
        return java.util.regex.Pattern.compile("<circle.*?</circle>")
                .matcher(html)
                .results()
                .map(java.util.regex.MatchResult::group)
                .filter(circle -> !circle.startsWith("<circle class=theirs"))
                .toList();
    }

    /** Four seconds of four steps are no scale at which a staircase decides. */
    @Test
    void stepsThatAreTooShortAreGreyToo() throws IOException {
        files.put("one.yaml", """
                technologies: [rest, grpc, rpcx]
                topologies: line:2
                messages: [text:10]
                loads: [staircase:10-40:+10:1s]
                restarts: 3
                """);
        files.computeIfPresent(
                "paper.yaml",
                (_, text) -> text.replace(
                        "metric: latency_median, unit: ms, across: amount",
                        "metric: step_throughput, unit: 1/s, across: step"));
        Analysis steps = Report.of(SampleStore.loads(Files.createDirectory(folder.resolve("steps"))))
                .analysis();
        PaperReport report = report(steps, Optional.empty(), "");
        String curve = new CurvePage(report.run(), report.run().paper().curves().getFirst()).html();
        assertThat(circles(curve))
                .hasSize(4)
                .allSatisfy(circle -> assertThat(circle).contains("class=open", "not decided at this scale"));
    }

    @Test
    void survivorsAreToldBesideTheirFigureAndHalfOfTheRestartsDecideNothing() throws IOException {
        String claim = claim("so", of("rest") + " < 1000");
        Analysis most = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("most")), 2, 5))
                .analysis();
        PaperReport decided = report(most, Optional.empty(), claim);
        assertThat(decided.counts()).containsEntry(Verdict.HOLDS, 1L);
        decided.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("<small class=hint>3 of 5 restarts</small>");
        assertThat(Files.readAllLines(folder.resolve(PaperReport.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 1,rest"))
                .singleElement()
                .satisfies(row -> assertThat(row).endsWith(",3 of 5"));

        files.put("claims.csv", "id,place,sentence,expression,note\n");
        Analysis half = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("half")), 3, 6))
                .analysis();
        PaperReport open = report(half, Optional.empty(), claim);
        assertThat(open.counts()).containsEntry(Verdict.NOT_DECIDED, 1L);
    }

    /** REST holds 685 MB after eight messages and 161 MB after the one that the figure is of. */
    @Test
    void memoryOfServicesThatCarriedSeveralMessagesDecidesNothing() throws IOException {
        String memory = of("rest").replace("latency_median", "memory_after_load");
        files.put("claims.csv", "id,place,sentence,expression,note\n");
        PaperReport several = report(5, claim("held", memory + " < 1000000"));
        assertThat(several.counts()).containsEntry(Verdict.NOT_DECIDED, 1L);
        several.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not decided: its services carried other messages before");

        files.computeIfPresent("one.yaml", (_, text) -> text + "alone: true\n");
        files.put("claims.csv", "id,place,sentence,expression,note\n");
        assertThat(report(5, claim("held", memory + " < 1000000")).counts()).containsEntry(Verdict.HOLDS, 1L);
    }

    @Test
    void whatIsMissingIsNotDecided() throws IOException {
        PaperReport report = report(
                5,
                claim("absent", of("kafka") + " < " + of("rest"))
                        + claim("metric", "highest_rate[technology=rest, message=text:1000, load=few] < 5")
                        + claim("unfailing", "users_at_first_failure[technology=rest, message=text:1000, load=few] < 5")
                        + "said,1,It is.,,of architecture\n");
        assertThat(report.counts()).containsEntry(Verdict.NOT_DECIDED, 4L);
        report.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not measured: kafka")
                .contains("none: no request failed")
                .contains("nothing measured decides it");
    }

    @Test
    void twoRestartsDecideNothing() throws IOException {
        PaperReport report = report(2, claim("early", of("rest") + " < 1000"));
        assertThat(report.counts()).containsEntry(Verdict.NOT_DECIDED, 1L);
    }

    @Test
    void everyPublishedFigureHasItsRowAndOneForEachWayItWasMeasured() throws IOException {
        PaperReport report = report(5, "");
        report.writeTo(folder);
        List<String> rows = Files.readAllLines(folder.resolve(PaperReport.FIGURES));
        assertThat(rows).hasSize(1 + 7);
        assertThat(rows).filteredOn(row -> row.contains("rpcx")).hasSize(2).anyMatch(row -> row.contains("closed:16"));
        assertThat(rows)
                .filteredOn(row -> row.contains("kafka"))
                .singleElement()
                .satisfies(row -> assertThat(row).contains("not measured: kafka"));
        assertThat(report.covered()).isEqualTo("5 of 6 published figures have ours beside them");
        double gain = Double.parseDouble(rows.stream()
                .filter(row -> row.startsWith("Table 2"))
                .findFirst()
                .orElseThrow()
                .split(",")[9]);
        Map<Integer, Redrawn.Restart> rest = byRestart("rest");
        double[] gains = byRestart("grpc").entrySet().stream()
                .mapToDouble(grpc -> 100
                        * (grpc.getValue().value()
                                        / Objects.requireNonNull(rest.get(grpc.getKey()))
                                                .value()
                                - 1))
                .sorted()
                .toArray();
        assertThat(gains).hasSize(5);
        assertThat(gain)
                .as("the median over restarts of the gain within each")
                .isCloseTo(gains[2], org.assertj.core.api.Assertions.within(0.001));
    }

    @Test
    void aRatioStandsForThePartsThatHaveBothOfItsSides() throws IOException {
        files.computeIfPresent(
                "paper.yaml",
                (_, text) -> text.replace(
                        "about: a test}]", "about: a test}, {part: two, place: some of it, about: a test}]"));
        files.put("two.yaml", files.get("one.yaml").replace("[rest, grpc, rpcx, kafka]", "[grpc, rpcx]"));
        report(5, "").writeTo(folder);
        List<String> rows = Files.readAllLines(folder.resolve(PaperReport.FIGURES));
        assertThat(rows).filteredOn(row -> row.startsWith("Table 1,grpc")).hasSize(2);
        assertThat(rows)
                .filteredOn(row -> row.startsWith("Table 2,grpc/rest"))
                .singleElement()
                .satisfies(row -> assertThat(row).contains(",one,").doesNotContain("not measured"));
    }

    @Test
    void oursIsToldInTheUnitOfThePaper() throws IOException {
        report(5, "").writeTo(folder);
        String row = Files.readAllLines(folder.resolve(PaperReport.FIGURES)).stream()
                .filter(line -> line.startsWith("Table 4"))
                .findFirst()
                .orElseThrow();
        assertThat(Double.parseDouble(row.split(",")[9])).isBetween(1e6, 1e8);
    }

    @Test
    void inABrowserEveryDrawingHasItsAxesAndItsData() throws Exception {
        Chromium browser = Chromium.in(folder);
        report(5, claim("so", of("rest") + " < 1000")).writeTo(folder);
        Path frame = Files.writeString(folder.resolve("frame.html"), """
                <!doctype html><iframe id=f src="paper.html" style="width:700px;height:3000px;border:0"></iframe>
                <script>document.getElementById("f").addEventListener("load", () => {
                  const page = document.getElementById("f").contentDocument;
                  const note = (name, value) => document.body.setAttribute("data-" + name, value);
                  const drawings = [...page.querySelectorAll("svg")];
                  note("drawings", drawings.length);
                  note("axes", drawings.every((d) => [...d.querySelectorAll("text.axis")].some((t) => /\\(.+\\)/.test(t.textContent))));
                  note("marks", Math.min(...drawings.map((d) => d.querySelectorAll("circle").length)));
                  note("data", [...page.querySelectorAll("figure")].every((f) => f.querySelector("a.csv[download]")));
                  note("named", [...page.querySelectorAll("figure h3")].every((h) => h.textContent.endsWith("own")));
                  note("overflow", page.documentElement.scrollWidth - page.documentElement.clientWidth);
                  note("outside", drawings.flatMap((d) => [...d.querySelectorAll("text")].filter((t) => {
                    const box = t.getBoundingClientRect(), all = d.getBoundingClientRect();
                    return box.left < all.left - 1 || box.right > all.right + 1 || box.bottom > all.bottom + 1;
                  }).map((t) => t.textContent)).join("|"));
                });</script>""");
        List<String> output = browser.document(frame, 1);
        assertThat(output).filteredOn(line -> line.contains("CONSOLE")).isEmpty();
        assertThat(String.join("\n", output))
                .contains("data-drawings=\"4\"")
                .contains("data-axes=\"true\"")
                .contains("data-data=\"true\"")
                .contains("data-named=\"true\"")
                .contains("data-overflow=\"0\"")
                .contains("data-outside=\"\"")
                .doesNotContain("data-marks=\"0\"");
        assertThat(new String(
                        browser.printed(folder.resolve("paper.html")), java.nio.charset.StandardCharsets.ISO_8859_1))
                .startsWith("%PDF");
    }

    @Test
    void theRecordSaysWhatHeldAndWhatDepends() throws IOException {
        PaperReport report = report(
                5,
                claim("so", of("rest") + " < 1000")
                        + claim("false", of("rest") + " > 1000")
                        + claim("open", of("kafka") + " < 1000")
                        + claim("other", of("grpc") + " < 1000"));
        Path file = PaperRecord.write(folder.resolve("kept/2026-01-02-own.md"), List.of(report));
        assertThat(Files.readString(file))
                .contains("| own | 2026-01-02T")
                .contains("| own | 2 | 1 | 1 | 5 of 6 published figures")
                .contains("## What held")
                .contains("## What did not hold")
                .contains("not measured: kafka");
        assertThat(folder.resolve("kept/2026-01-02-own/own"))
                .isDirectoryContaining("glob:**paper.html")
                .isDirectoryContaining("glob:**figures.csv")
                .isDirectoryContaining("glob:**claims.csv");
        assertThat(Files.readString(folder.resolve("kept/2026-01-02-own/own/paper.html")))
                .doesNotContain("its whole report");
    }

    /** Stores are large, and need not be kept until the last paper has been run. */
    @Test
    void aPaperThatWasRecordedBeforeKeepsItsRows() throws IOException {
        Path file = folder.resolve("kept/papers.md");
        PaperRecord.write(file, List.of(report(5, claim("so", of("rest") + " < 1000"))));
        Path own = folder.resolve("kept/papers/own");
        String alone = Files.readString(file);
        Path other = Files.createDirectories(folder.resolve("kept/papers/zhang"));
        Files.writeString(
                other.resolve(PaperRecord.ROWS),
                Files.readString(own.resolve(PaperRecord.ROWS))
                        .replace("\"own\"", "\"zhang\"")
                        .replace("| own", "| zhang"));
        PaperRecord.write(file, List.of(report(5, claim("false", of("rest") + " > 1000"))));
        String both = Files.readString(file);
        assertThat(both)
                .contains("| zhang | 1 | 0 | 0 |", "(papers/zhang/paper.html)", "(papers/own/paper.html)")
                .contains("| own | 1 | 1 | 0 |")
                .containsOnlyOnce("| paper | " + Scale.PAPER.rule());
        // the papers of the workbench come first
        assertThat(both.indexOf("| zhang | 1 |")).isLessThan(both.indexOf("| own | 1 | 1 |"));
        assertThat(both.lines().filter(line -> line.startsWith("| zhang")).map(line -> line.replace("zhang", "own")))
                .containsExactlyElementsOf(
                        alone.lines().filter(line -> line.startsWith("| own")).toList());
    }

    @Test
    void rowsThatCannotBeReadAreNamed() throws IOException {
        Path file = folder.resolve("kept/papers.md");
        Path other = Files.createDirectories(folder.resolve("kept/papers/zhang"));
        Files.writeString(other.resolve(PaperRecord.ROWS), "{\"paper\": ");
        PaperReport report = report(5, claim("so", of("rest") + " < 1000"));
        assertThatThrownBy(() -> PaperRecord.write(file, List.of(report)))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("zhang/record.json")
                .hasMessageContaining("parley reproduce --record");
        assertThat(file).doesNotExist();
    }

    /** Without them a reader cannot tell a cold run of one restart from a warm one of five. */
    @Test
    void theRecordSaysCommitScaleWarmthAndOrder() throws IOException {
        PaperReport report = report(5, claim("so", of("rest") + " < 1000"));
        assertThat(Files.readString(PaperRecord.write(folder.resolve("kept/own.md"), List.of(report))))
                .contains(
                        "| own | 2026-01-02T08:00:00Z | 1 h 58 min | 0123456789ab | `./parley reproduce own --for 2h` |")
                .contains("| own/one | 0123456789abcdef | paper | 5 | compilers took ")
                .contains("rest, grpc, rpcx; each further restart begins one further on");
        report.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("./parley reproduce own --for 2h", "paper, restarts 5", "compilers took ");
    }

    @Test
    void criteriaStandSideBySide() throws IOException {
        report(5, "").writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("<section id=criteria>", "what is in it", "id=curves", "download=\"criteria.csv\"")
                .contains("<b>" + Figures.brief(median("rest")) + "</b> ms");
    }

    @Test
    void thePageNamesThePaperAndTakesNothingForMarkup() throws IOException {
        PaperReport report = report(5, claim("so", of("rest") + " < 1000"));
        report.writeTo(folder);
        String html = Files.readString(folder.resolve(PaperReport.HTML));
        assertThat(html)
                .contains("Somebody (2026): A &lt;paper&gt;. somewhere.")
                .contains("a note")
                .contains("theirs (ms)")
                .contains("order of technologies: tau ")
                .doesNotContain("<paper>")
                .doesNotContain("<script");
        assertThat(Files.readString(PaperReport.index(folder, List.of(report)))).contains("own/paper.html");
    }
}
