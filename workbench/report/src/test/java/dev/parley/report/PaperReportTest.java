package dev.parley.report;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

    private static Map<Verdict, Long> counts(PaperReport report) {
        Map<Verdict, Long> counts = new java.util.EnumMap<>(Verdict.class);
        for (Verdict verdict : Verdict.values()) {
            counts.put(verdict, (long) report.results().claims(verdict).size());
        }
        return counts;
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
        assertThat(counts(report))
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
        assertThat(counts(byOtherRules)).containsEntry(Verdict.NOT_DECIDED, 1L);
        byOtherRules.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not decided: measured by other rules (1; here " + dev.parley.model.Rules.VERSION + ")");
        assertThat(Files.readAllLines(folder.resolve(PaperFiles.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 1,rest"))
                .singleElement()
                .satisfies(row ->
                        assertThat(row.split(",")[12]).as("a ratio to theirs").isEmpty());

        files.put("claims.csv", "id,place,sentence,expression,note\n");
        PaperReport ofAnotherPlan = report(analysis(5), Optional.of("a digest"), claim);
        assertThat(counts(ofAnotherPlan)).containsEntry(Verdict.NOT_DECIDED, 1L);
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
        assertThat(Files.readAllLines(folder.resolve(PaperFiles.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 2,grpc/rest"))
                .singleElement()
                .satisfies(
                        row -> assertThat(row).contains(",cold: compilers took").doesNotContain("indicative"));
    }

    @Test
    void pointsThatDecideNothingAreGrey() throws Exception {
        Analysis cold = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("cold")), 3, 3))
                .analysis();
        PaperReport report = report(cold, Optional.empty(), "");
        List<Chart.Point> curve = points(PaperCharts.curves(report.results()));
        assertThat(curve).as("technologies × messages × loads").hasSize(3 * 2 * 2);
        assertThat(curve)
                .filteredOn(point -> point.flag().startsWith("cold: compilers took"))
                .hasSize(4)
                .allSatisfy(point -> assertThat(point.technology()).isEqualTo("rest"));
        assertThat(points(PaperCharts.tables(report.results())))
                .filteredOn(point -> point.flag().startsWith("cold: compilers took"))
                .extracting(Chart.Point::technology)
                .containsExactly("rest", "grpc/rest");
        Map<String, String> noted = inABrowser(report);
        assertThat(noted.get("grey"))
                .as("two of the curve's first panel, two beside the paper's")
                .isEqualTo("4");
        assertThat(noted.get("lines")).as("no line through them").isEqualTo("0|2|2");
    }

    private static List<Chart.Point> points(List<Chart> charts) {
        return charts.stream()
                .flatMap(chart -> chart.rows().stream())
                .flatMap(row -> row.points().stream())
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
        assertThat(points(PaperCharts.curves(report.results())))
                .hasSize(4)
                .allSatisfy(point -> assertThat(point.flag()).startsWith("not decided at this scale"));
    }

    @Test
    void survivorsAreToldBesideTheirFigureAndHalfOfTheRestartsDecideNothing() throws IOException {
        String claim = claim("so", of("rest") + " < 1000");
        Analysis most = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("most")), 2, 5))
                .analysis();
        PaperReport decided = report(most, Optional.empty(), claim);
        assertThat(counts(decided)).containsEntry(Verdict.HOLDS, 1L);
        decided.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML))).contains("<td>indicative: 3 of 5 restarts</td>");
        assertThat(Files.readAllLines(folder.resolve(PaperFiles.FIGURES)))
                .filteredOn(row -> row.startsWith("Table 1,rest"))
                .singleElement()
                .satisfies(row -> assertThat(row).endsWith(",3 of 5,"));

        files.put("claims.csv", "id,place,sentence,expression,note\n");
        Analysis half = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("half")), 3, 6))
                .analysis();
        PaperReport open = report(half, Optional.empty(), claim);
        assertThat(counts(open)).containsEntry(Verdict.NOT_DECIDED, 1L);
    }

    /** REST holds 685 MB after eight messages and 161 MB after the one that the figure is of. */
    @Test
    void memoryOfServicesThatCarriedSeveralMessagesDecidesNothing() throws IOException {
        String memory = of("rest").replace("latency_median", "memory_after_load");
        files.put("claims.csv", "id,place,sentence,expression,note\n");
        PaperReport several = report(5, claim("held", memory + " < 1000000"));
        assertThat(counts(several)).containsEntry(Verdict.NOT_DECIDED, 1L);
        several.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not decided: its services carried other messages before");

        files.computeIfPresent("one.yaml", (_, text) -> text + "alone: true\n");
        files.put("claims.csv", "id,place,sentence,expression,note\n");
        assertThat(counts(report(5, claim("held", memory + " < 1000000")))).containsEntry(Verdict.HOLDS, 1L);
    }

    @Test
    void whatIsMissingIsNotDecided() throws IOException {
        PaperReport report = report(
                5,
                claim("absent", of("kafka") + " < " + of("rest"))
                        + claim("metric", "highest_rate[technology=rest, message=text:1000, load=few] < 5")
                        + claim("unfailing", "users_at_first_failure[technology=rest, message=text:1000, load=few] < 5")
                        + "said,1,It is.,,of architecture\n");
        assertThat(counts(report)).containsEntry(Verdict.NOT_DECIDED, 4L);
        report.writeTo(folder);
        assertThat(Files.readString(folder.resolve(PaperReport.HTML)))
                .contains("not measured: kafka")
                .contains("none: every request was a success")
                .contains("nothing measured decides it");
    }

    @Test
    void twoRestartsDecideNothing() throws IOException {
        PaperReport report = report(2, claim("early", of("rest") + " < 1000"));
        assertThat(counts(report)).containsEntry(Verdict.NOT_DECIDED, 1L);
    }

    @Test
    void everyPublishedFigureHasItsRowAndOneForEachWayItWasMeasured() throws IOException {
        PaperReport report = report(5, "");
        report.writeTo(folder);
        List<String> rows = Files.readAllLines(folder.resolve(PaperFiles.FIGURES));
        assertThat(rows).as("with the one that the paper set").hasSize(1 + 8);
        assertThat(rows).filteredOn(row -> row.contains("rpcx")).hasSize(2).anyMatch(row -> row.contains("closed:16"));
        assertThat(rows)
                .filteredOn(row -> row.contains("kafka"))
                .singleElement()
                .satisfies(row -> assertThat(row).contains("not measured: kafka"));
        assertThat(report.results().covered()).isEqualTo("5 of 6 published figures have ours beside them");
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
        List<String> rows = Files.readAllLines(folder.resolve(PaperFiles.FIGURES));
        assertThat(rows).filteredOn(row -> row.startsWith("Table 1,grpc")).hasSize(2);
        assertThat(rows)
                .filteredOn(row -> row.startsWith("Table 2,grpc/rest"))
                .singleElement()
                .satisfies(row -> assertThat(row).contains(",one,").doesNotContain("not measured"));
    }

    @Test
    void oursIsToldInTheUnitOfThePaper() throws IOException {
        report(5, "").writeTo(folder);
        String row = Files.readAllLines(folder.resolve(PaperFiles.FIGURES)).stream()
                .filter(line -> line.startsWith("Table 4"))
                .findFirst()
                .orElseThrow();
        assertThat(Double.parseDouble(row.split(",")[9])).isBetween(1e6, 1e8);
    }

    /** What a browser finds on the page, on a screen as narrow as a telephone's or as wide as a desk's. */
    @ParameterizedTest
    @CsvSource({"1280, 1", "400, 0"})
    void inABrowserEveryDrawingIsDrawnAndEveryVerdictIsSeen(int width, int scheme) throws Exception {
        PaperReport report = report(
                5,
                claim("so", of("rest") + " < 1000") + claim("not-so", of("rest") + " > 1000") + "said,1,It is.,,no\n");
        Map<String, String> noted = inABrowser(report, width, scheme);
        assertThat(noted)
                .containsEntry("drawn", "true")
                .containsEntry("overflow", "0")
                .containsEntry("outside", "")
                .containsEntry("data", "true")
                .containsEntry("verdicts", "holds|does not hold|not decided here");
        assertThat(noted.get("charts"))
                .as("a curve, three tables, one with pairs")
                .isEqualTo("5");
        assertThat(Chromium.in(folder).grave(folder.resolve("paper.html"), width, scheme))
                .isEmpty();
        assertThat(new String(Chromium.in(folder).printed(folder.resolve("paper.html")), ISO_8859_1))
                .startsWith("%PDF");
    }

    private Map<String, String> inABrowser(PaperReport report) throws Exception {
        return inABrowser(report, 1280, 1);
    }

    private Map<String, String> inABrowser(PaperReport report, int width, int scheme) throws Exception {
        Chromium browser = Chromium.in(folder);
        report.writeTo(folder);
        Path frame = Files.writeString(folder.resolve("frame.html"), """
                <!doctype html><iframe id=f src="paper.html" style="width:%dpx;height:3000px;border:0"></iframe>
                <script>document.getElementById("f").addEventListener("load", () => {
                  const { contentDocument: page, contentWindow: view } = document.getElementById("f");
                  const note = (name, value) => document.body.setAttribute("data-" + name, value);
                  const charts = [...page.querySelectorAll("div.chart")];
                  note("charts", charts.length);
                  note("drawn", charts.every((c) => c.dataset.drawn === "yes"
                      && c.querySelectorAll("svg path").length > 2));
                  note("data", [...page.querySelectorAll("figure:has(table)")]
                      .every((f) => f.querySelector("a.csv[download]")));
                  note("overflow", page.documentElement.scrollWidth - page.documentElement.clientWidth);
                  note("outside", charts.flatMap((c) => [...c.querySelectorAll("svg text")].filter((t) => {
                    const box = t.getBoundingClientRect(), all = c.getBoundingClientRect();
                    return box.left < all.left - 1 || box.right > all.right + 1;
                  }).map((t) => t.textContent)).join("|"));
                  note("verdicts", [...page.querySelectorAll(".claims > tbody > tr > td:first-child")].filter((v) => {
                    const box = v.firstElementChild.getBoundingClientRect();
                    return box.width > 0 && box.left >= 0 && box.right <= view.innerWidth;
                  }).map((v) => v.textContent.trim()).join("|"));
                  const soft = getComputedStyle(page.querySelector("p.facts")).color;
                  const colour = (shape, what) => getComputedStyle(shape)[what];
                  const shapes = charts.flatMap((c) => [...c.querySelectorAll("svg path")]);
                  note("grey", shapes.filter((s) => s.getAttribute("fill") && colour(s, "fill") === soft
                      && colour(s, "stroke") === soft).length);
                  const curve = view.echarts.getInstanceByDom(page.querySelector("div[data-chart^=curve]")).getOption();
                  note("lines", curve.series.filter((s) => s.type === "line").map((s) => s.data.length).join("|"));
                });</script>""".formatted(width));
        List<String> output = browser.document(frame, scheme);
        assertThat(output).filteredOn(line -> line.contains("CONSOLE")).isEmpty();
        Map<String, String> noted = new java.util.HashMap<>();
        Pattern.compile("data-(\\w+)=\"([^\"]*)\"")
                .matcher(output.stream()
                        .filter(line -> line.contains("<body data-"))
                        .findFirst()
                        .orElseThrow())
                .results()
                .forEach(found -> noted.put(found.group(1), found.group(2)));
        return noted;
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
                .isDirectoryContaining("glob:**figures.csv")
                .isDirectoryContaining("glob:**claims.csv")
                .isDirectoryContaining("glob:**record.json")
                .isDirectoryNotContaining("glob:**.html");
    }

    /** A cold trial was counted as void. */
    @Test
    void theRecordTellsColdTrialsFromVoidOnes() throws IOException {
        Analysis cold = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("cold")), 2, 5))
                .analysis();
        PaperReport report = report(cold, Optional.empty(), "");
        assertThat(Files.readString(PaperRecord.write(folder.resolve("kept/own.md"), List.of(report))))
                .contains(
                        "| part | in the paper | trials | void | cold | unknown warmth | failed | not as published |",
                        "| own/one | all of it | 60 of 60 | 0 | 8 | 0 | 0 | kafka |");
        assertThat(PaperPage.of(report.results(), false).flags())
                .contains(new RunPage.Flag("hint", "8 cold trials"))
                .noneMatch(flag -> flag.text().contains("void"));
    }

    /** Stores are large, and need not be kept until the last paper has been run. */
    @Test
    void aPaperThatWasRecordedBeforeKeepsItsRows() throws IOException {
        Path file = folder.resolve("kept/papers.md");
        PaperRecord.write(file, List.of(report(5, claim("so", of("rest") + " < 1000"))));
        String alone = Files.readString(file);
        Path zhang = folder.resolve("kept/papers/zhang");
        Files.move(folder.resolve("kept/papers/own"), zhang);
        replace(zhang.resolve(PaperFiles.RECORD), "\"own\"", "\"zhang\"");
        PaperRecord.write(file, List.of(report(5, claim("false", of("rest") + " > 1000"))));
        String both = Files.readString(file);
        assertThat(both)
                .contains("| zhang | 1 | 0 | 0 |", "(papers/zhang/figures.csv)", "(papers/own/figures.csv)")
                .contains("| own | 1 | 1 | 0 |")
                .containsOnlyOnce("| paper | " + Scale.PAPER.rule());
        // the papers of the workbench come first
        assertThat(both.indexOf("| zhang | 1 |")).isLessThan(both.indexOf("| own | 1 | 1 |"));
        assertThat(both.lines().filter(line -> line.startsWith("| zhang")).map(line -> line.replace("zhang", "own")))
                .containsExactlyElementsOf(
                        alone.lines().filter(line -> line.startsWith("| own")).toList());
    }

    /** What a record holds is all that its pages need: once a store is gone they are still made, byte by byte. */
    @Test
    void pagesFromTheRecordAreThoseFromTheStore() throws IOException {
        Analysis cold = Report.of(SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("cold")), 2, 5))
                .analysis();
        PaperReport report = report(
                cold,
                Optional.empty(),
                claim("so", of("grpc") + " < 1000")
                        + claim("far", of("kafka") + " < " + of("rest"))
                        + claim(
                                "each",
                                "every t in {rest, grpc, rpcx}: not " + of("@t") + " < " + of("grpc") + " * 0.99")
                        + "said,1,\"It, \"\"is\"\".\",,of architecture\n");
        Path stored = Files.createDirectory(folder.resolve("stored"));
        report.writeAlone(stored);
        PaperReport.index(stored, List.of(report));
        Path file = PaperRecord.write(folder.resolve("kept/papers.md"), List.of(report));
        String markdown = Files.readString(file);

        List<PaperReport> recorded = PaperRecord.read(file);
        assertThat(recorded)
                .singleElement()
                .satisfies(read -> assertThat(read.results()).isEqualTo(report.results()));
        Files.delete(file);
        Path pages = Files.createDirectory(folder.resolve("pages"));
        PaperRecord.writePages(file, recorded, pages);
        assertThat(pages.resolve("own/paper.html")).hasSameBinaryContentAs(stored.resolve("paper.html"));
        assertThat(pages.resolve("index.html")).hasSameBinaryContentAs(stored.resolve("index.html"));
        assertThat(file).hasContent(markdown);
        assertThat(Files.readString(pages.resolve("own/paper.html"))).doesNotContain("its whole report");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            record.json     | "own"           | "other"         | record.json: paper: other (expected: own, as its folder is called)
            record.json     | "citation"      | "cited"         | record.json:
            figures.csv     | paper_load      | load            | figures.csv:1: place,technology,
            figures.csv     | 1,rest,,text    | 1,rest,text     | figures.csv:2: 18 fields (expected: 19 fields)
            figures.csv     | ,7.5,           | ,about 7,       | figures.csv:2: theirs: about 7 (expected: a number, or nothing)
            claims.csv      | ,holds,         | ,hold,          | claims.csv:2: verdict: hold (expected: holds, does not hold or not decided here)
            claims.csv      | ] < 1000        | ] ~ 1000        | claims.csv:2: expression: latency_median
            comparisons.csv | so,1,           | sow,1,          | comparisons.csv:2: claim: sow (expected: the id of a claim of claims.csv)
            comparisons.csv | ,false,         | ,no,            | comparisons.csv:2: indicative: no (expected: true or false)
            curves.csv      | 1,text:1000     | 2,text:1000     | curves.csv:2: curve: 2 (expected: 1 to 1, as record.json has them)
            """)
    void whatIsDamagedInARecordIsNamed(String name, String sound, String damaged, String message) throws IOException {
        Path file = PaperRecord.write(
                folder.resolve("kept/papers.md"), List.of(report(5, claim("so", of("rest") + " < 1000"))));
        replace(folder.resolve("kept/papers/own").resolve(name), sound, damaged);
        assertThatThrownBy(() -> PaperRecord.read(file))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("kept/papers/own/" + message);
    }

    @Test
    void whatIsMissingOfARecordIsNamed() throws IOException {
        Path file = PaperRecord.write(
                folder.resolve("kept/papers.md"), List.of(report(5, claim("so", of("rest") + " < 1000"))));
        Path own = folder.resolve("kept/papers/own");
        Path figures = own.resolve(PaperFiles.FIGURES);
        Files.writeString(figures, Files.readString(figures).stripTrailing());
        assertThatThrownBy(() -> PaperRecord.read(file))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("figures.csv:9: a line without an end (expected: a whole file)");
        PaperResults results = report(5, "").results();
        PaperFiles.write(results, own);
        Path comparisons = own.resolve(PaperFiles.COMPARISONS);
        Files.writeString(comparisons, Files.readAllLines(comparisons).getFirst() + "\n");
        assertThatThrownBy(() -> PaperRecord.read(file))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("claims.csv:2: expression: ", "an expression of 0 comparisons")
                .hasMessageContaining("as many as comparisons.csv has of so; it makes 1");
        PaperFiles.write(results, own);
        for (String name : List.of(PaperFiles.CURVES, PaperFiles.RECORD)) {
            Files.delete(own.resolve(name));
            assertThatThrownBy(() -> PaperRecord.read(file))
                    .isInstanceOf(BadInput.class)
                    .hasMessageEndingWith(
                            name + ": not there (expected: a file as parley reproduce --record writes it)");
        }
        assertThatThrownBy(() -> PaperRecord.read(folder.resolve("none.md")))
                .isInstanceOf(BadInput.class)
                .hasMessageStartingWith("--pages: ");
    }

    private static void replace(Path file, String one, String other) throws IOException {
        String text = Files.readString(file);
        assertThat(text).contains(one);
        Files.writeString(file, text.replaceFirst(Pattern.quote(one), Matcher.quoteReplacement(other)));
    }

    /** A figure in the tree whose page says something else was edited, or its page is of another state of the code. */
    @Test
    void pagesInTheTreeAreWhatTheirFilesSay() throws IOException {
        Path results = PagesTest.home().resolve("docs/results");
        List<Path> records;
        try (Stream<Path> files = Files.walk(results)) {
            records = files.filter(file -> file.endsWith(PaperFiles.RECORD))
                    .map(file -> file.getParent().getParent())
                    .distinct()
                    .toList();
        }
        for (Path record : records) {
            Path page = record.resolveSibling(record.getFileName() + ".md");
            assertThat(page).hasContent(PaperRecord.markdown(page, PaperRecord.read(page)));
        }
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
                .contains("<section id=\"criteria\">", "what is in it", "<section id=\"curves\">")
                .contains("<td>" + Figures.brief(median("rest")) + " ms</td>");
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
                .doesNotContain("<paper>");
        assertThat(Files.readString(PaperReport.index(folder, List.of(report)))).contains("own/paper.html");
    }
}
