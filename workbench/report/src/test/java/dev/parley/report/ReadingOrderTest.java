package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a reader finds who goes through the page from its beginning without seeing it, or without JavaScript. */
class ReadingOrderTest {
    @TempDir
    static Path folder;

    @BeforeAll
    static void write() throws Exception {
        Report.of(SampleStore.compare(Files.createDirectory(folder.resolve("well")), 5))
                .writeTo(folder.resolve("well"));
        Report.of(SampleStore.troubled(Files.createDirectory(folder.resolve("troubled"))))
                .writeTo(folder.resolve("troubled"));
        Report.of(SampleStore.loads(Files.createDirectory(folder.resolve("loads"))))
                .writeTo(folder.resolve("loads"));
    }

    /** Without what a browser runs. */
    private static String page(String run) throws Exception {
        return Files.readString(folder.resolve(run).resolve(Report.HTML))
                .replaceAll("(?s)<(script|style)\\b.*?</\\1>", "");
    }

    private static List<String> found(String page, String pattern) {
        return Pattern.compile(pattern, Pattern.DOTALL)
                .matcher(page)
                .results()
                .map((MatchResult found) -> found.group(found.groupCount()))
                .toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"well", "troubled", "loads"})
    void noLevelOfHeadingsIsSkipped(String run) throws Exception {
        List<Integer> levels =
                found(page(run), "<h([1-6])\\b").stream().map(Integer::parseInt).toList();
        assertThat(levels).startsWith(1, 2, 3).hasSizeGreaterThan(20);
        assertThat(levels.stream().filter(level -> level == 1)).hasSize(1);
        for (int i = 1; i < levels.size(); i++) {
            assertThat(levels.get(i)).as("heading " + i).isLessThanOrEqualTo(levels.get(i - 1) + 1);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"well", "troubled", "loads"})
    void sentencesComeBeforeTheChartAndTheChartBeforeTheFirstTable(String run) throws Exception {
        String page = page(run);
        assertThat(page.indexOf("<h1>")).isPositive();
        assertThat(List.of(
                        page.indexOf("<h1>"),
                        page.indexOf("<ul class=\"findings\">"),
                        page.indexOf("<p class=\"basis\">"),
                        page.indexOf("data-chart=\"lead-"),
                        page.indexOf("<table class=\"verdicts\">"),
                        page.indexOf("</section>")))
                .isSorted();
        assertThat(page.substring(0, page.indexOf("</section>")).split("<div class=\"chart\"", -1))
                .as("one chart among the results")
                .hasSize(2);
    }

    @ParameterizedTest
    @ValueSource(strings = {"well", "troubled", "loads"})
    void everyTableSaysWhatItHoldsAndWhichWayItsHeadsPoint(String run) throws Exception {
        String page = page(run);
        assertThat(found(page, "<table[^>]*>\\s*(.{9})")).isNotEmpty().containsOnly("<caption>", "<caption ");
        assertThat(found(page, "<caption[^>]*>(.*?)</caption>")).noneMatch(String::isBlank);
        assertThat(found(page, "<th\\b([^>]*)>"))
                .isNotEmpty()
                .allMatch(attributes -> attributes.matches(" scope=\"(col|row)\""));
    }

    @ParameterizedTest
    @ValueSource(strings = {"well", "troubled", "loads"})
    void everyChartSaysWhereItsFiguresStandAndHasThem(String run) throws Exception {
        String page = page(run);
        List<String> charts = found(page, "<div class=\"chart\"([^>]*)>");
        assertThat(charts)
                .hasSizeGreaterThan(11)
                .allMatch(attributes -> attributes.contains(" role=\"img\"")
                        && attributes.contains("The table below holds the figures.\""));
        assertThat(found(page, "(<figure\\b.*?</figure>)"))
                .filteredOn(figure -> figure.contains("class=\"chart\""))
                .hasSameSizeAs(charts)
                .allMatch(figure -> figure.contains("<table>") && figure.contains("download=\""));
        assertThat(page).contains("<noscript>");
    }
}
