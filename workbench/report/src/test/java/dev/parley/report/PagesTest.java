package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is written in Python and reads what a report writes: the makers of recorded pages, and the audit. */
class PagesTest {
    private record Ended(int code, String said) {}

    @Test
    void theMakersOfRecordedPagesPassTheirTests() throws Exception {
        assumeTrue(runs("python3", "--version"), "no python3 on the PATH: the makers of recorded pages were left out");
        Ended tests = python("python3", "-B", "-m", "unittest", "discover", "-s", "build/pages");
        assertThat(tests.code()).as(tests.said()).isZero();
        assertThat(tests.said()).containsPattern("Ran [1-9][0-9]* tests");
    }

    @Test
    void theAuditDerivesWhatIsPublishedOfWarmColdAndLostRestarts(@TempDir Path folder) throws Exception {
        assumeTrue(Boolean.getBoolean("parley.long"), "the audit takes a minute: -Dparley.long=true");
        String python = home().resolve("target/python/bin/python").toString();
        assumeTrue(
                runs(python, "-c", "import duckdb"), "no DuckDB for Python in target/python: the audit was left out");
        List<String> audit = new ArrayList<>(List.of(
                python, "-B", "docs/results/audit/audit.py", "--figures", "100", "--verdicts", "40", "--seed", "7"));
        List<Path> stores = List.of(
                SampleStore.compare(Files.createDirectory(folder.resolve("warm")), 5),
                SampleStore.cold(Files.createDirectory(folder.resolve("cold"))),
                SampleStore.coldAtFirst(Files.createDirectory(folder.resolve("most")), 2, 6),
                SampleStore.loads(Files.createDirectory(folder.resolve("loads"))));
        for (Path store : stores) {
            Path run = store.toAbsolutePath().getParent();
            Report.of(store).writeTo(run);
            audit.add(run.toString());
        }
        Ended ended = python(audit.toArray(String[]::new));
        assertThat(ended.code()).as(ended.said()).isZero();
        assertThat(ended.said()).contains("140 of 140 agree");
    }

    private static boolean runs(String... command) throws InterruptedException {
        try {
            return python(command).code() == 0;
        } catch (IOException notThere) {
            return false;
        }
    }

    private static Ended python(String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .directory(home().toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), said);
    }

    static Path home() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("build/pages"))) {
            folder = folder.getParent();
        }
        return folder;
    }
}
