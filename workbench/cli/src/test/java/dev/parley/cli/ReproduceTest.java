package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.lab.Catalog;
import dev.parley.lab.TimeRange;
import dev.parley.studies.Paper;
import dev.parley.studies.Scale;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReproduceTest {
    @TempDir
    Path folder;

    @Test
    void theStudiesAreListedWithWhatTheyNeed() {
        Typed result = Typed.line("studies");
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .contains("kazanavicius  Kazanavičius, J.; Mažeika, D. (2023)")
                .contains("work records with postgres")
                .contains("--scale quick: ");
        assertThat(result.out()).doesNotContain("not here");
    }

    /** The estimate has in it what stands around boots and trials: descriptions, the generator's ceiling, reports. */
    @Test
    void thePlanOfAllFiveTakesAboutAnHourAndRunsNothing() {
        TimeRange quick = Paper.NAMES.stream()
                .map(name -> Studies.estimate(Paper.named(name), Catalog.read().names(), Scale.QUICK))
                .reduce(TimeRange.NONE, TimeRange::plus);
        assertThat(quick.least()).isLessThan(Duration.ofHours(1));
        assertThat(quick.most()).isLessThan(Duration.ofMinutes(80));
        Typed result = Typed.line("reproduce", "all", "--plan");
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .containsPattern("zhang/shared: 342 trials in 9 boots of services, about \\d+ to \\d+ min")
                .containsPattern("in all \\d+ trials, about \\d+ to \\d+ min, and longer where a load ");
    }

    @Test
    void aBackendThatNoPartUsesIsNamed() {
        Typed unused = Typed.line("reproduce", "zhang", "--plan", "--backend", "mysql=there:3306");
        assertThat(unused.err())
                .isEqualTo("parley: --backend: mysql=there:3306 (expected: a database that the work messages uses:"
                        + " none)\n");
        assertThat(unused.exitCode()).isEqualTo(1);
        assertThat(Typed.line("reproduce", "niswar", "--plan", "--backend", "mysql=there:3306")
                        .exitCode())
                .isZero();
    }

    @Test
    void aFolderOfOnesOwnIsPlannedLikeTheOthers() {
        Typed result = Typed.line(
                "reproduce",
                Typed.home().resolve("docs/examples/short-messages").toString(),
                "--plan");
        assertThat(result.err()).isEmpty();
        assertThat(result.out()).contains("short-messages/two-services: 12 trials in 6 boots");
    }

    /** At its own scale a boot of niswar's takes longer than a minute: nothing is begun, and what is left is told. */
    @Test
    void aSittingBeginsNothingThatWouldEndLater() throws IOException {
        Path results = folder.resolve("niswar");
        Typed result =
                Typed.line("reproduce", "niswar", "--scale", "paper", "--for", "1m", "--out", results.toString());
        assertThat(result.err()).isEmpty();
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .containsPattern("left: \\d+ trials; ./parley reproduce --resume \\S+ --for 1m goes on");
        assertThat(Files.readAllLines(results.resolve("sittings.tsv")))
                .singleElement()
                .satisfies(line -> assertThat(line).endsWith("--for 1m --out " + results));
        assertThat(Files.readString(results.resolve("niswar/paper.html"))).contains("--for 1m");
        assertThat(results).isDirectoryNotContaining("glob:**.duckdb");
        assertThat(results.resolve("niswar")).as("no folder of a part").isDirectoryNotContaining(Files::isDirectory);
    }

    @Test
    void pagesAreMadeAgainFromARecordAlone() throws IOException {
        Path results = folder.resolve("niswar");
        Path record = folder.resolve("kept/papers.md");
        Typed.line("reproduce", "niswar", "--scale", "paper", "--for", "1m", "--out", results.toString());
        Typed recorded = Typed.line("reproduce", "--read", results.toString(), "--record", record.toString());
        assertThat(recorded.err()).isEmpty();
        assertThat(folder.resolve("kept/papers/niswar")).isDirectoryNotContaining("glob:**.html");
        String markdown = Files.readString(record);
        Files.delete(record);

        Path pages = folder.resolve("pages");
        Typed again = Typed.line("reproduce", "--pages", record.toString(), "--out", pages.toString());
        assertThat(again.err()).isEmpty();
        assertThat(again.exitCode()).isZero();
        assertThat(again.out()).isEqualTo("report: " + pages.resolve("index.html") + "\nrecord: " + record + "\n");
        assertThat(pages.resolve("niswar/paper.html")).isRegularFile();
        assertThat(record).hasContent(markdown);
    }

    @Test
    void whatCannotBeUsedIsNamed() throws IOException {
        assertThat(Typed.line("reproduce").err()).contains("NAME: none (expected: one of kazanavicius, ");
        assertThat(Typed.line("reproduce", "smith").err()).contains("NAME: smith (expected: one of kazanavicius, ");
        assertThat(Typed.line("reproduce", "zahng").err())
                .contains("NAME: zahng (did you mean zhang? expected: one of kazanavicius, ");
        assertThat(Typed.line("reproduce", "zhang", "--scale", "huge").err())
                .contains("--scale: huge (expected: quick, standard or paper)");
        assertThat(Typed.line("reproduce", "zhang", "--scale", "quik").err())
                .contains("--scale: quik (did you mean quick? expected: quick, standard or paper)");
        assertThat(Typed.line("reproduce", "--resume", folder.toString()).err())
                .contains("(expected: a folder in which parley reproduce was begun)");
        assertThat(Typed.line("reproduce", "--read", folder.toString()).err())
                .contains("--read: ", "(expected: a folder in which parley reproduce was begun)");
        assertThat(Typed.line("reproduce", "zhang", "--record", "page.html").err())
                .contains("--record: page.html (expected: a name that ends in .md)");
        assertThat(Typed.line("reproduce", "zhang", "--record", folder + "/.md").err())
                .contains("--record: " + folder + "/.md (expected: a name that ends in .md)");
        assertThat(Typed.line("reproduce", "--pages", "page.html").err())
                .contains("--pages: page.html (expected: a name that ends in .md)");
        assertThat(Typed.line("reproduce", "--pages", "page.md").err())
                .contains("--pages: page.md (expected: a page that parley reproduce --record wrote, with its folder");
        assertThat(Typed.line("reproduce", "--pages", "page.md", "--scale", "quick")
                        .err())
                .contains("--pages: page.md (expected: nothing beside it but --out, since nothing is run or read)");
        assertThat(Typed.line("reproduce", "zhang", "--for", "soon").err())
                .contains("--for: soon (expected: hours or minutes such as 2h or 90m)");
        assertThat(Typed.line("reproduce", "--read", folder.toString(), "--for", "2h")
                        .err())
                .contains("(expected: neither --resume, --for nor --plan, since nothing is run)");
        Files.writeString(folder.resolve("reproduce.txt"), "name: zhang\nscale: quick\n");
        assertThat(Typed.line("reproduce", "niswar", "--resume", folder.toString())
                        .err())
                .contains("NAME: niswar (expected: zhang, which was begun in ");
        assertThat(Typed.line("reproduce", "--scale", "paper", "--resume", folder.toString())
                        .err())
                .contains("--scale: paper (expected: quick, with which ");
    }

    /** Before a paper's hours, not after them. */
    @Test
    void aPlaceThatCannotBeWrittenIsRefusedBeforeAnythingRuns() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "kept");
        Path asFolder = Files.createDirectory(folder.resolve("page.md"));
        Path beside = folder.resolve("beside.md");
        Files.writeString(folder.resolve("beside"), "kept");
        refused("--record: " + asFolder + " (expected: a file, or none yet)", "zhang", "--record", asFolder.toString());
        refused(
                "--record: " + file + "/a/b.md, below " + file
                        + ", which is no folder (expected: a folder, or none yet)",
                "zhang",
                "--record",
                file + "/a/b.md");
        refused(
                "--record: " + folder.resolve("beside") + " (expected: a folder, or none yet)",
                "zhang",
                "--record",
                beside.toString());
        refused("--out: " + file + ", where nothing can be written: ", "zhang", "--out", file.toString());
        Path out = Files.createDirectories(folder.resolve("out"));
        Files.writeString(out.resolve("zhang"), "kept");
        refused(
                "--out: " + out.resolve("zhang") + " (expected: a folder, or none yet)",
                "zhang",
                "--out",
                out.toString());
        assertThat(out).as("nothing was begun").isDirectoryNotContaining("glob:**.txt");
    }

    private static void refused(String why, String... typed) {
        List<String> line = new ArrayList<>(List.of("reproduce"));
        line.addAll(List.of(typed));
        Typed result = Typed.line(line.toArray(String[]::new));
        assertThat(result.err()).startsWith("parley: " + why).hasLineCount(1);
        assertThat(result.exitCode()).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'' | : name: nothing (expected: one of kazanavicius, ",
                "'name: zahng\nscale: quick\n' | : name: zahng (expected: one of kazanavicius, ",
                "'name: zhang\n' | : scale: nothing (expected: quick, standard or paper)",
                "'name: zhang\nscale: qui' | : scale: qui (expected: quick, standard or paper)",
                "'name: zhang\nscale: quick\nrestarts: many\n' | : restarts: many (expected: 1 to 1000)",
                "'name: zhang\nscale: quick\nrestarts: 0\n' | : restarts: 0 (expected: 1 to 1000)",
                "'name: zhang\nscale: quick\nrestarts: 1' | : a last line without an end (expected: a whole file)",
                "'name: zhang\nscale: quick\nrest' | : rest (expected: lines with name, scale and restarts)"
            })
    void aMarkThatWasEditedOrCutIsNamed(String text, String why) throws IOException {
        Path mark = Files.writeString(folder.resolve("reproduce.txt"), text.replace("\\n", "\n"));
        refused(mark + why, "--resume", folder.toString());
        refused(mark + why, "--read", folder.toString());
    }

    @Test
    void aMarkThatIsNoTextIsNamed() throws IOException {
        Path mark = Files.write(folder.resolve("reproduce.txt"), new byte[] {(byte) 0xff, '\n'});
        refused(mark + ": bytes that are no UTF-8 (expected: ", "--resume", folder.toString());
    }
}
