package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StudyCommandsTest {
    @TempDir
    Path folder;

    @Test
    void theGuidesExampleIsGood() throws IOException {
        String guide = Files.readString(Typed.home().resolve("docs/specs.md"));
        String yaml = guide.substring(guide.indexOf("```yaml\n") + 8, guide.lastIndexOf("```"));
        Path file = Files.writeString(folder.resolve("study.yaml"), yaml);
        Typed result = Typed.line("validate", file.toString());
        assertThat(result.err()).isEmpty();
        assertThat(result.exitCode()).isZero();
        assertThat(result.out()).startsWith(file + ": good, 690 trials; digest ");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "loads", "recorded"})
    void theExamplesAreGood(String examples) throws IOException {
        Path home = Typed.home().resolve("docs/examples").resolve(examples);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(home, "*.yaml")) {
            for (Path file : files) {
                Typed result = Typed.line("validate", file.toString());
                assertThat(result.err()).isEmpty();
                assertThat(result.out()).startsWith(file + ": good, ");
            }
        }
    }

    @Test
    void everyMistakeOfAFileIsALineAndNothingIsRun() throws IOException {
        Path file = Files.writeString(folder.resolve("study.yaml"), """
                technologies: [rest, soap]
                messages: text:10
                loads:
                  - closed: {clients: none}
                """);
        for (String command : new String[] {"validate", "plan", "run"}) {
            Typed result = Typed.line(command, file.toString());
            assertThat(result.exitCode()).isEqualTo(1);
            assertThat(result.out()).isEmpty();
            assertThat(result.err().lines())
                    .satisfiesExactly(
                            line -> assertThat(line)
                                    .startsWith("parley: " + file + ":1: technologies[1]: soap (expected: one of rest"),
                            line -> assertThat(line)
                                    .isEqualTo("parley: " + file
                                            + ":4: loads[0].closed.clients: none (expected: a whole number)"));
        }
    }

    @Test
    void thePlanSaysHowManyTrialsAndHowLong() throws IOException {
        Path file = Files.writeString(folder.resolve("study.yaml"), """
                study: small
                technologies: [rest, rpcx]
                messages: text:10
                loads: [closed:1, open:10:even]
                effort: quick
                """);
        Typed result = Typed.line("plan", "--trials", file.toString());
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .contains("2 technologies × 1 topologies × 1 messages × 2 loads × 2 restarts = 8 trials in 4 boots")
                .contains("about ", "trial 8: restart 2");
        assertThat(Typed.line("plan", "--trials", file.toString()).out()).isEqualTo(result.out());
    }

    @Test
    void theSchemaIsPrinted() {
        assertThat(Typed.line("validate", "--schema").out()).startsWith("{").contains("\"$schema\"", "staircase");
    }

    @Test
    void theLoadsArePrintedAsTheGuideHasThem() throws IOException {
        String loads = Typed.line("validate", "--loads").out();
        assertThat(loads).contains("| `staircase` |", "`staircase:10-200:+10:30s`");
        assertThat(Files.readString(Typed.home().resolve("docs/specs.md"))).contains(loads);
    }

    @Test
    void aCommandThatIsNotThereIsNamedBesideThoseThatAre() {
        Typed result = Typed.line("messure", "study.yaml");
        assertThat(result.err()).startsWith("parley: no command messure study.yaml (expected: one of compare, run, ");
        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(Typed.line("compar").err())
                .startsWith("parley: no command compar (did you mean compare? expected: one of compare, run, ");
    }

    @Test
    void aTimeThatIsNoneIsNamedBeforeAnythingIsRun() throws IOException {
        Path file = Files.writeString(folder.resolve("study.yaml"), """
                technologies: rpcx
                messages: text:10
                loads: closed:1
                window: 99999999h
                """);
        for (String command : new String[] {"validate", "plan", "run"}) {
            Typed result = Typed.line(command, file.toString());
            assertThat(result.err()).isEqualTo("parley: " + file + ":4: window: 99999999h (expected: at most 720h)\n");
            assertThat(result.exitCode()).isEqualTo(1);
        }
    }

    /** A search counted as one window. */
    @Test
    void thePlanOfWhatIsNotKnownIsARange() throws IOException {
        Path file = Files.writeString(folder.resolve("study.yaml"), """
                technologies: rpcx
                topologies: line:2
                messages: text:10
                loads: ["highest:100-800:p99:50ms:5s", "burst:5:1"]
                effort: quick
                restarts: 3
                """);
        assertThat(Typed.line("plan", file.toString()).out())
                .containsPattern("about \\d+ to \\d+ min, and longer where a load goes on until its work is done\n");
    }

    @Test
    void aRunIsAskedForAFileOrAFolder() {
        assertThat(Typed.line("run").err()).isEqualTo("parley: SPEC: none (expected: a study file, or --resume DIR)\n");
        Typed noRun = Typed.line("run", "--resume", folder.toString());
        assertThat(noRun.err()).contains("--resume: " + folder + " (expected: a folder with results.duckdb in it)");
        assertThat(noRun.exitCode()).isEqualTo(1);
    }

    @Test
    void aSittingIsAskedForHoursOrMinutes() throws IOException {
        Path file = Files.writeString(folder.resolve("study.yaml"), """
                technologies: rpcx
                messages: text:10
                loads: closed:1
                """);
        Typed result = Typed.line("run", file.toString(), "--for", "soon");
        assertThat(result.err()).isEqualTo("parley: --for: soon (expected: hours or minutes such as 2h or 90m)\n");
        assertThat(result.exitCode()).isEqualTo(1);
    }
}
