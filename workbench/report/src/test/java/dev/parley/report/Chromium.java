package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import tools.jackson.databind.json.JsonMapper;

/** A real Chromium without a window, found on the PATH. */
final class Chromium {
    private static final String AXE = "/axe.min.js";

    private final Path browser;
    private final Path folder;

    private Chromium(Path browser, Path folder) {
        this.browser = browser;
        this.folder = folder;
    }

    /** Ends the test as not tried where there is none. */
    static Chromium in(Path folder) {
        Optional<Path> found = Stream.of(System.getenv("PATH").split(java.io.File.pathSeparator))
                .flatMap(dir -> Stream.of("chromium", "chromium-browser", "google-chrome", "chrome")
                        .map(name -> Path.of(dir, name)))
                .filter(Files::isExecutable)
                .findFirst();
        Assumptions.assumeTrue(
                found.isPresent(), "no chromium or chrome on the PATH: the page was not tried in a browser");
        return new Chromium(found.orElseThrow(), folder);
    }

    /** The document after its scripts, and what the browser logged. */
    List<String> document(Path page, int scheme) throws Exception {
        return run(
                page,
                "--blink-settings=preferredColorScheme=" + scheme,
                "--window-size=1400,3200",
                "--enable-logging=stderr",
                "--virtual-time-budget=5000",
                "--dump-dom");
    }

    /**
     * What keeps people from reading a page on a screen so many pixels wide; empty where nothing does. The rules are
     * those of axe-core, and grave is what it calls serious or critical.
     */
    String grave(Path page, int width, int scheme) throws Exception {
        String rules = JsonMapper.builder().build().writeValueAsString(Pages.resource(AXE));
        Path frame = Files.writeString(page.resolveSibling("axe.html"), """
                <!doctype html><iframe id=f src="%s" style="width:%dpx;height:3000px;border:0"></iframe>
                <script>const rules = %s;
                document.currentScript.remove();
                document.getElementById("f").addEventListener("load", async () => {
                  const { contentDocument: page, contentWindow: view } = document.getElementById("f");
                  const note = (name, value) => document.body.setAttribute("data-" + name, value);
                  const script = page.createElement("script");
                  script.textContent = rules;
                  page.head.append(script);
                  const found = await view.axe.run(page, { preload: false });
                  const grave = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
                  note("passes", found.passes.length);
                  const where = (v) => v.nodes.slice(0, 3).map((n) => n.html).join(" ");
                  note("grave", grave.map((v) => v.id + ": " + where(v)).join("; "));
                });</script>""".formatted(
                        page.getFileName(), width, rules.replace("<", "\\u003c")));
        List<String> output = document(frame, scheme);
        assertThat(output).filteredOn(line -> line.contains("CONSOLE")).isEmpty();
        Matcher noted = Pattern.compile("data-passes=\"(\\d+)\" data-grave=\"([^\"]*)\"")
                .matcher(String.join("\n", output));
        assertThat(noted.find()).as("axe-core has run").isTrue();
        assertThat(Integer.parseInt(noted.group(1))).as("rules that hold").isGreaterThan(10);
        return noted.group(2);
    }

    /** As it would be printed. */
    byte[] printed(Path page) throws Exception {
        Path pdf = folder.resolve("printed.pdf");
        run(page, "--print-to-pdf=" + pdf);
        return Files.readAllBytes(pdf);
    }

    private List<String> run(Path page, String... options) throws Exception {
        Path log = folder.resolve("chromium.log");
        List<String> command = new ArrayList<>(List.of(
                browser.toString(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--allow-file-access-from-files",
                "--user-data-dir=" + Files.createTempDirectory(folder, "profile")));
        command.addAll(List.of(options));
        command.add(page.toUri().toString());
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        try {
            assertThat(process.waitFor(90, TimeUnit.SECONDS))
                    .as("the browser ends within 90 s")
                    .isTrue();
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        return Files.readAllLines(log, StandardCharsets.UTF_8);
    }
}
