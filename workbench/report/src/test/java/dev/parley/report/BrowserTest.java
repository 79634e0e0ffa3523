package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The page in a real Chromium without a window: charts drawn, nothing on the console, nothing wider than the screen,
 * nothing that keeps people from reading it.
 */
class BrowserTest {
    @TempDir
    static Path folder;

    private static Chromium browser;

    @BeforeAll
    static void findBrowser() throws IOException {
        browser = Chromium.in(folder);
        Report.of(SampleStore.compare(Files.createDirectory(folder.resolve("well")), 3))
                .writeTo(folder.resolve("well"));
        Report.of(SampleStore.troubled(Files.createDirectory(folder.resolve("troubled"))))
                .writeTo(folder.resolve("troubled"));
        Report.of(SampleStore.of("star:4", Files.createDirectory(folder.resolve("star"))))
                .writeTo(folder.resolve("star"));
        Report.of(SampleStore.loads(Files.createDirectory(folder.resolve("loads"))))
                .writeTo(folder.resolve("loads"));
    }

    /** Run, width and colour scheme. The first four are each run once, and each width with each scheme. */
    static Stream<Arguments> drawn() {
        return first(
                4,
                Arguments.of("well", 1280, 1),
                Arguments.of("troubled", 1280, 0),
                Arguments.of("star", 400, 0),
                Arguments.of("loads", 400, 1),
                Arguments.of("well", 400, 1),
                Arguments.of("well", 400, 0),
                Arguments.of("troubled", 400, 1),
                Arguments.of("star", 1280, 1),
                Arguments.of("loads", 1280, 0));
    }

    /** Run, width and colour scheme. The first three are each run once, and each width and each scheme. */
    static Stream<Arguments> read() {
        return first(
                3,
                Arguments.of("well", 1280, 1),
                Arguments.of("troubled", 400, 1),
                Arguments.of("loads", 400, 0),
                Arguments.of("well", 400, 0),
                Arguments.of("troubled", 1280, 0),
                Arguments.of("loads", 1280, 1));
    }

    /** Each case starts a browser. All of them are tried with {@code -Dparley.long=true}. */
    private static Stream<Arguments> first(int cases, Arguments... all) {
        return Stream.of(all).limit(Boolean.getBoolean("parley.long") ? all.length : cases);
    }

    @ParameterizedTest(name = "{0}, {1} pixels, preferred colour scheme {2}")
    @MethodSource("drawn")
    void everyChartIsDrawnAndTheConsoleStaysEmpty(String run, int width, int scheme) throws Exception {
        // a window cannot be as narrow as a telephone, a frame can; what it finds it leaves in its own document
        Path frame = Files.writeString(folder.resolve(run + width + scheme + ".html"), """
                <!doctype html><iframe id=f src="%s/report.html" style="width:%dpx;height:3000px;border:0"></iframe>
                <script>document.getElementById("f").addEventListener("load", () => {
                  const page = document.getElementById("f").contentDocument;
                  const note = (name, value) => document.body.setAttribute("data-" + name, value);
                  const charts = [...page.querySelectorAll("div.chart")];
                  note("charts", charts.length);
                  note("shapes", Math.min(...charts.map((c) => c.querySelectorAll("svg path").length)));
                  note("drawn", charts.every((c) => c.dataset.drawn === "yes"));
                  note("overflow", page.documentElement.scrollWidth - page.documentElement.clientWidth);
                  note("outside", charts.flatMap((c) => [...c.querySelectorAll("svg text")].filter((t) => {
                    const box = t.getBoundingClientRect(), all = c.getBoundingClientRect();
                    return box.left < all.left - 1 || box.right > all.right + 1;
                  }).map((t) => t.textContent)).join("|"));
                  note("paper", getComputedStyle(page.body).backgroundColor);
                });</script>""".formatted(run, width));
        List<String> output = browser.document(frame, scheme);
        String dom = String.join("\n", output);
        assertThat(output).filteredOn(line -> line.contains("CONSOLE")).isEmpty();
        assertThat(dom).contains("data-drawn=\"true\"", "data-overflow=\"0\"", "data-outside=\"\"");
        assertThat(number(dom, "charts")).isGreaterThanOrEqualTo(12);
        assertThat(number(dom, "shapes")).isGreaterThanOrEqualTo(3);
        assertThat(dom).contains(scheme == 0 ? "data-paper=\"rgb(20, 23, 27)\"" : "data-paper=\"rgb(252, 252, 251)\"");
    }

    @ParameterizedTest(name = "{0}, {1} pixels, preferred colour scheme {2}")
    @MethodSource("read")
    void nothingGraveKeepsPeopleFromReading(String run, int width, int scheme) throws Exception {
        assertThat(browser.grave(folder.resolve(run).resolve(Report.HTML), width, scheme))
                .isEmpty();
    }

    @Test
    void thePageCanBePrinted() throws Exception {
        byte[] printed = browser.printed(folder.resolve("well").resolve(Report.HTML));
        assertThat(new String(printed, 0, 4, java.nio.charset.StandardCharsets.ISO_8859_1))
                .isEqualTo("%PDF");
        assertThat(printed.length).as("more than an empty sheet").isGreaterThan(20_000);
    }

    private static int number(String dom, String name) {
        var found = Pattern.compile("data-" + name + "=\"(\\d+)\"").matcher(dom);
        assertThat(found.find()).as(name + " in " + dom).isTrue();
        return Integer.parseInt(found.group(1));
    }
}
