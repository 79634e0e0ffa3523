package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ArgumentsTest {
    @TempDir
    Path folder;

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--technologies soap         | technology: soap (expected: one of rest",
                "--technologies rpcx,rpcx    | --technologies: rpcx twice (expected:",
                "--technologies rest,        | expected: one of rest",
                "--topology ring:3           | ring:3 (expected: line:n",
                "--topology line:0           | line:0 (expected:",
                "--topology line:65          | line:65 (expected:",
                "--topology graph:a>b;b>a    | expected:",
                "--work soap                 | work: soap (expected:",
                "--messages text:            | message: text: (expected: kind:size",
                "--messages text:-1          | expected:",
                "--messages types:7          | types:7",
                "--messages text:5,text:5    | --messages: text:5 twice (expected: each once)",
                "--messages letters:5        | letters:5",
                "--clients 0                 | clients: 0 (expected: 1 to",
                "--clients x                 | --clients: x (expected: whole numbers",
                "--clients 1,1               | --clients: 1 twice (expected: each once)",
                "--restarts 0                | restarts: 0 (expected: 1 to",
                "--limit 0                   | --limit: 0 (expected:",
                "--rate 0                    | --rate: 0.0 (expected: 0.000001 to 10000000)",
                "--rate=-3                   | --rate: -3.0 (expected: 0.000001 to 10000000)",
                "--rate abc                  | --rate: abc (expected: requests a second, such as 200)",
                "--rate 200 --clients 1      | --rate: 200 beside --clients 1 (expected: one of the two",
                "--p99 20                    | --p99: 20 (expected: a time above 0, such as 20ms",
                "--p99=-1ms                  | --p99: -1ms (expected: a time above 0",
                "--p50 20ms --p99 10ms       | p99: 10ms (expected: not under that of p50 20ms)",
                "--p999 2s                   | target: p999 2000ms (expected: at most the time within which a reply",
                "--success 99.9              | --success: 99.9 (expected: a share above 0, up to 100%",
                "--seed many                 | --seed",
                "--colour red                | --colour",
                "--technologies grcp         | technology: grcp (did you mean grpc? expected: one of rest",
                "--topology lien:5           | topology: lien:5 (did you mean line:n? expected: line:n",
                "--work mesages              | --work: mesages (did you mean messages? expected: one of messages",
                "--technologes rest          | (did you mean --technologies?) (see ./parley compare --help)",
                "--technologes=rest          | (did you mean --technologies?)",
                "--backend mysql=there:3306  | --backend: mysql=there:3306 (expected: a database that the work messages"
                        + " uses: none)",
                "--backend kafak=there:9092  | --backend: kafak (did you mean kafka? expected: one of rabbitmq, kafka,",
                "--backend kafka             | --backend: kafka (expected: NAME=HOST:PORT, each name once",
                "--backend kafka=there       | --backend: kafka=there (expected: NAME=HOST:PORT, each name once"
            })
    void whatCannotBeUsedIsNamedInOneLineAndLeavesNothing(String typed, String said) {
        Path out = folder.resolve("run");
        List<String> args = new ArrayList<>(List.of("compare", "--out", out.toString()));
        args.addAll(Arrays.asList(typed.strip().split(" ")));
        Typed result = Typed.line(args.toArray(String[]::new));
        assertThat(result.err()).startsWith("parley: ").contains(said);
        assertThat(result.err().lines()).hasSize(1);
        assertThat(result.out()).isEmpty();
        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(out).doesNotExist();
    }

    @Test
    void aFolderThatHoldsARunIsNotWrittenInto() throws IOException {
        Files.writeString(folder.resolve("results.duckdb"), "of an earlier run");
        Typed result = Typed.line("compare", "--out", folder.toString());
        assertThat(result.err()).contains("--out: " + folder + " (expected: a folder without a run in it)");
        assertThat(result.exitCode()).isEqualTo(1);
        try (Stream<Path> files = Files.list(folder)) {
            assertThat(files).hasSize(1);
        }
    }

    @Test
    void aFolderThatCannotBeMadeIsNamed() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        Typed result = Typed.line("compare", "--out", file.resolve("run").toString());
        assertThat(result.err()).contains("--out: " + file.resolve("run") + ", where nothing can be written: ");
        assertThat(result.err().lines()).hasSize(1);
        assertThat(result.exitCode()).isEqualTo(1);
    }

    @Test
    void aReportOfNoRunIsRefused() {
        Typed result = Typed.line("report", folder.toString());
        assertThat(result.err())
                .isEqualTo("parley: DIR: " + folder + " (expected: a folder with results.duckdb in it)"
                        + System.lineSeparator());
        assertThat(result.exitCode()).isEqualTo(1);
    }

    @Test
    void aBareCommandLineSaysWhatThereIs() {
        Typed result = Typed.line();
        assertThat(result.err()).contains("compare", "report", "doctor", "--help");
        assertThat(result.exitCode()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "compare ",
                "run ",
                "validate ",
                "plan ",
                "list ",
                "show ",
                "gate ",
                "export ",
                "reproduce ",
                "studies ",
                "report ",
                "technologies ",
                "doctor ",
                "dist "
            })
    void everyCommandExplainsItself(String command) {
        Typed result = Typed.line((command + "--help").split(" "));
        assertThat(result.exitCode()).isZero();
        assertThat(result.out()).startsWith("Usage: ./parley");
        assertThat(result.out())
                .contains("Exit codes: 0 ")
                .containsPattern("Examples?:\\s+\\./parley ")
                .doesNotContain("${");
        if (!command.isEmpty()) {
            assertThat(result.out()).as("what it leaves, and where").containsPattern("[Ww]rites");
        }
        assertThat(result.out().lines().mapToInt(String::length).max().orElseThrow())
                .isLessThanOrEqualTo(100);
    }

    @Test
    void theVersionIsOneLine() {
        assertThat(Typed.line("--version").out().lines()).hasSize(1);
    }

    /** The launcher of a checkout adds what makes one where the word comes first. */
    @Test
    void aDistributionIsRefusedWhereNothingMakesIt() {
        Path out = folder.resolve("made");
        Typed result = Typed.line("dist", "--out", out.toString());
        assertThat(result.err())
                .startsWith("parley: dist: " + Typed.home())
                .contains("expected: a checkout, where dist is the first word: ./parley dist");
        assertThat(result.err().lines()).hasSize(1);
        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(out).doesNotExist();
    }

    @Test
    void theDoctorExaminesThisMachine() {
        Typed result = Typed.line("doctor");
        assertThat(result.exitCode()).isZero();
        assertThat(result.out()).contains("cores", "noise", "memory", "jdk");
    }
}
