package dev.parley.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Metric;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialRow.State;
import dev.parley.model.TrialSpec;
import dev.parley.store.StoreException.Code;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunStoreTest {
    /** How every database of SQLite begins. Source: sqlite.org, Database File Format, section 1.3. */
    private static final byte[] SQLITE = "SQLite format 3\0".getBytes(StandardCharsets.US_ASCII);

    @TempDir
    Path folder;

    @Test
    void everyRecordReadsBackEqual() {
        Path file = folder.resolve("results.duckdb");
        List<TrialSpec> plan = List.of(SampleRun.spec(0), SampleRun.spec(1), SampleRun.spec(2));
        List<LibraryRow> libraries = List.of(
                new LibraryRow("rest", "helidon", "4.3.1", "Apache-2.0", 200),
                new LibraryRow(FigureRow.EMPTY, "service", "", LibraryRow.UNKNOWN, 100));
        try (RunStore store = RunStore.create(file, SampleRun.run())) {
            store.appendPlan(plan);
            store.appendLibraries(libraries);
            store.append(
                    SampleRun.ended(0, State.FINISHED, "generator busy: 91 %", "swap seen"),
                    SampleRun.seconds(0),
                    SampleRun.histograms(0),
                    SampleRun.figures(0));
            store.append(SampleRun.ended(1, State.FAILED));
        }
        try (RunStore store = RunStore.open(file)) {
            assertThat(store.run()).isEqualTo(SampleRun.run());
            assertThat(store.run().machine().keySet()).containsExactly("kernel", "cpu", "cores");
            assertThat(store.plan()).isEqualTo(plan);
            assertThat(store.trials())
                    .containsExactly(
                            SampleRun.ended(0, State.FINISHED, "generator busy: 91 %", "swap seen"),
                            SampleRun.ended(1, State.FAILED));
            assertThat(store.unfinished()).containsExactly(SampleRun.spec(1), SampleRun.spec(2));
            assertThat(store.seconds())
                    .usingRecursiveFieldByFieldElementComparator()
                    .containsExactlyElementsOf(SampleRun.seconds(0));
            assertThat(store.histograms())
                    .usingRecursiveFieldByFieldElementComparator()
                    .containsExactlyElementsOf(SampleRun.histograms(0));
            assertThat(store.figures()).containsExactlyInAnyOrderElementsOf(SampleRun.figures(0));
            assertThat(store.libraries()).containsExactlyInAnyOrderElementsOf(libraries);
        }
    }

    @Test
    void viewsHoldOnlyValidTrialsAndTheWindowAndCanBeBuiltAnew() throws SQLException {
        Path file = folder.resolve("results.duckdb");
        try (RunStore store = RunStore.create(file, SampleRun.run())) {
            store.appendPlan(IntStream.range(0, 6).mapToObj(SampleRun::spec).toList());
            for (int id = 0; id < 2; id++) {
                TrialRow end =
                        id == 0 ? SampleRun.ended(0, State.FINISHED) : SampleRun.ended(1, State.FINISHED, "void");
                store.append(end, SampleRun.seconds(id), SampleRun.histograms(id), SampleRun.figures(id));
            }
            store.append(SampleRun.ended(2, State.FAILED));
            store.append(
                    SampleRun.ended(3, State.FINISHED, "cold: compilers were busy"),
                    SampleRun.seconds(3),
                    SampleRun.histograms(3),
                    SampleRun.figures(3));
            store.append(SampleRun.ended(4, State.FINISHED, "unknown: few requests"));
            store.append(SampleRun.ended(5, State.FINISHED, "unknown: few requests", "cold: latency fell"));
            store.buildViews();
            store.buildViews();
        }
        assertThat(ask(file, "SELECT count(*) FROM clean.trial")).isEqualTo(6);
        assertThat(ask(file, "SELECT count(*) FROM clean.valid_trial")).isEqualTo(1);
        assertThat(ask(file, "SELECT count(*) FROM clean.void_trial")).isEqualTo(1);
        assertThat(ask(file, "SELECT trial_id FROM clean.void_trial")).isEqualTo(1);
        assertThat(ask(file, "SELECT count(*) FROM clean.cold_trial")).isEqualTo(2);
        assertThat(ask(file, "SELECT min(trial_id) FROM clean.cold_trial")).isEqualTo(3);
        assertThat(ask(file, "SELECT trial_id FROM clean.unknown_trial")).isEqualTo(4);
        assertThat(ask(file, "SELECT count(*) FROM clean.unfinished_trial")).isEqualTo(1);
        assertThat(ask(file, "SELECT sum(replied) FROM clean.window_second")).isEqualTo(201);
        assertThat(ask(file, "SELECT not_sent FROM clean.outcome")).isEqualTo(4);
        assertThat(ask(file, "SELECT count(*) FROM clean.figure")).isEqualTo(2);
        assertThat(ask(file, "SELECT count(*) FROM raw.figure")).isEqualTo(6);
    }

    @Test
    void eachFinishedTrialIsInOneViewByWhatWasStoredAgainstIt() throws SQLException {
        Path file = folder.resolve("results.duckdb");
        List<TrialRow> ends = List.of(
                SampleRun.ended(0, State.FINISHED),
                SampleRun.ended(1, State.FINISHED, "unknown: nothing tells"),
                SampleRun.ended(2, State.FINISHED, "unknown: nothing tells", "cold: compilers were busy"),
                SampleRun.ended(3, State.FINISHED, "cold: compilers were busy", "swap seen"),
                SampleRun.ended(4, State.FAILED));
        try (RunStore store = RunStore.create(file, SampleRun.run())) {
            store.appendPlan(ends.stream().map(TrialRow::spec).toList());
            ends.forEach(store::append);
        }
        List<String> views = List.of("valid_trial", "unknown_trial", "cold_trial", "void_trial", "unfinished_trial");
        for (int id = 0; id < views.size(); id++) {
            String view = "FROM clean." + views.get(id);
            assertThat(ask(file, "SELECT count(*) " + view)).as(view).isEqualTo(1);
            assertThat(ask(file, "SELECT min(trial_id) " + view)).as(view).isEqualTo(id);
        }
    }

    @Test
    void aTrialTriedAgainAfterAResumeKeepsBothAttemptsAndShowsTheLast() throws SQLException {
        Path file = folder.resolve("results.duckdb");
        try (RunStore store = RunStore.create(file, SampleRun.run())) {
            store.appendPlan(List.of(SampleRun.spec(0)));
            store.append(
                    SampleRun.ended(0, State.INTERRUPTED),
                    List.of(),
                    List.of(),
                    List.of(new FigureRow(0, Metric.CPU_SHARE, "m1", 1)));
        }
        try (RunStore store = RunStore.resume(file)) {
            assertThat(store.unfinished()).containsExactly(SampleRun.spec(0));
            store.append(
                    SampleRun.ended(0, State.FINISHED),
                    List.of(),
                    List.of(),
                    List.of(new FigureRow(0, Metric.CPU_SHARE, "m1", 2)));
        }
        try (RunStore store = RunStore.open(file)) {
            assertThat(store.trials()).containsExactly(SampleRun.ended(0, State.FINISHED));
            assertThat(store.figures()).containsExactly(new FigureRow(0, Metric.CPU_SHARE, "m1", 2));
            assertThat(store.unfinished()).isEmpty();
        }
        assertThat(ask(file, "SELECT count(*) FROM raw.figure")).isEqualTo(2);
        assertThat(ask(file, "SELECT sum(value) FROM clean.figure")).isEqualTo(2);
    }

    /** A writer that is killed between the file and its first rows leaves no run that nobody can resume or begin. */
    @Test
    void aFileIsThereWithItsStudyAndItsPlanOrNotAtAll() throws IOException {
        Path file = folder.resolve("results.duckdb");
        Path making = Files.writeString(folder.resolve("results.duckdb.new"), "half of a file");
        Files.writeString(folder.resolve("results.duckdb.new.wal"), "half of its log");
        StoredStudy study = new StoredStudy("a digest", "study: it\n");
        TrialSpec planned = SampleRun.spec(0);
        try (RunStore store = RunStore.create(file, SampleRun.run(), study, List.of(planned))) {
            store.append(SampleRun.ended(0, State.FINISHED));
        }
        assertThat(making).doesNotExist();
        try (RunStore store = RunStore.open(file)) {
            assertThat(store.study()).contains(study);
            assertThat(store.plan()).containsExactly(planned);
            assertThat(store.trials()).containsExactly(SampleRun.ended(0, State.FINISHED));
        }
    }

    @Test
    void killedInTheMiddleItKeepsEveryAppendThatHadReturnedAndNothingHalf() throws Exception {
        Path file = folder.resolve("results.duckdb");
        Process writer = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        EndlessWriter.class.getName(),
                        file.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        int lastReturned = -1;
        try (BufferedReader lines = writer.inputReader()) {
            while (lastReturned < 25) {
                String line = lines.readLine();
                assertThat(line).as("the writer's next trial").isNotNull();
                lastReturned = Integer.parseInt(line);
            }
            assertThat(code(() -> RunStore.open(file))).isEqualTo(Code.LOCKED);
            writer.toHandle().destroyForcibly();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                lastReturned = Integer.parseInt(line);
            }
        } finally {
            writer.destroyForcibly();
        }
        writer.waitFor();
        try (RunStore store = RunStore.open(file)) {
            List<TrialRow> trials = store.trials();
            assertThat(trials).hasSizeBetween(lastReturned + 1, lastReturned + 2);
            assertThat(trials.getLast()).isEqualTo(SampleRun.ended(trials.size() - 1, State.FINISHED));
            assertThat(store.seconds()).hasSize(3 * trials.size());
            assertThat(store.figures()).hasSize(2 * trials.size());
            assertThat(store.unfinished()).hasSize(EndlessWriter.TRIALS - trials.size());
        }
        try (RunStore store = RunStore.resume(file)) {
            int next = store.unfinished().getFirst().id();
            store.append(SampleRun.ended(next, State.FINISHED));
            assertThat(store.trials()).hasSize(next + 1);
        }
    }

    @Test
    void aFileThatIsNoStoreIsNamedWithWhatWasExpected() throws Exception {
        Path text = Files.writeString(folder.resolve("notes.duckdb"), "no database");
        Path empty = Files.createFile(folder.resolve("empty.duckdb"));
        Path other = folder.resolve("other.duckdb");
        run(other, "CREATE TABLE t (a INTEGER)");
        assertThat(code(() -> RunStore.open(text))).isEqualTo(Code.NOT_A_STORE);
        assertThat(code(() -> RunStore.open(empty))).isEqualTo(Code.NOT_A_STORE);
        assertThat(code(() -> RunStore.open(other))).isEqualTo(Code.NOT_A_STORE);
        Path sqlite = Files.write(folder.resolve("sqlite.duckdb"), Arrays.copyOf(SQLITE, 8_192));
        assertThat(code(() -> RunStore.open(sqlite))).isEqualTo(Code.NOT_A_STORE);
        assertThat(code(() -> RunStore.open(folder))).isEqualTo(Code.NOT_A_STORE);
        assertThat(code(() -> RunStore.open(folder.resolve("none.duckdb")))).isEqualTo(Code.MISSING);
    }

    private static void readAll(Path file) {
        try (RunStore store = RunStore.open(file)) {
            store.run();
            store.study();
            store.plan();
            store.trials();
            store.seconds();
            store.histograms();
            store.figures();
            store.libraries();
        }
    }

    /** A disk that was full, or a copy that was stopped, leaves the beginning of a store. */
    @Test
    void aStoreThatWasCutShortIsNamedWithWhatToDo() throws IOException {
        Path file = folder.resolve("results.duckdb");
        try (RunStore store = RunStore.create(file, SampleRun.run())) {
            store.appendPlan(List.of(SampleRun.spec(0)));
            store.append(
                    SampleRun.ended(0, State.FINISHED),
                    SampleRun.seconds(0),
                    SampleRun.histograms(0),
                    SampleRun.figures(0));
        }
        byte[] whole = Files.readAllBytes(file);
        for (int left : new int[] {whole.length / 2, 20_000, 5_000}) {
            Path cut = Files.write(folder.resolve(left + ".duckdb"), Arrays.copyOf(whole, left));
            StoreException e = catchThrowableOfType(StoreException.class, () -> readAll(cut));
            assertThat(e).as(left + " of " + whole.length + " bytes").isNotNull();
            assertThat(e.code()).isEqualTo(Code.DAMAGED);
            assertThat(e.getMessage())
                    .isEqualTo(cut
                            + ": damaged or cut short, so that it cannot be read (expected: the whole results.duckdb of"
                            + " a run; copy it again, or measure again)");
        }
    }

    @Test
    void aNewerSchemaIsRefused() throws SQLException {
        Path file = folder.resolve("results.duckdb");
        RunStore.create(file, SampleRun.run()).close();
        run(file, "INSERT INTO raw.parley VALUES (99)");
        assertThat(code(() -> RunStore.open(file))).isEqualTo(Code.NEWER_SCHEMA);
    }

    @Test
    void aFileThatIsThereIsNeverOverwritten() throws IOException {
        Path file = Files.writeString(folder.resolve("results.duckdb"), "mine");
        assertThat(code(() -> RunStore.create(file, SampleRun.run()))).isEqualTo(Code.ALREADY_THERE);
        assertThat(file).hasContent("mine");
    }

    @Test
    void aFolderThatCannotTakeTheFileIsNamed() throws IOException {
        Path notAFolder = Files.createFile(folder.resolve("plain"));
        assertThat(code(() -> RunStore.create(notAFolder.resolve("results.duckdb"), SampleRun.run())))
                .isEqualTo(Code.NOT_WRITABLE);
        assertThat(code(() -> RunStore.create(folder.resolve("none/results.duckdb"), SampleRun.run())))
                .isEqualTo(Code.NOT_WRITABLE);
    }

    @Test
    void whatIsOpenForReadingTakesNoRow() {
        Path file = folder.resolve("results.duckdb");
        RunStore.create(file, SampleRun.run()).close();
        try (RunStore store = RunStore.open(file)) {
            SecondRow row = SampleRun.seconds(0).getFirst();
            assertThat(code(() -> store.append(row))).isEqualTo(Code.NOT_OPEN_FOR_THAT);
        }
    }

    @Test
    void aClosedStoreSaysSo() {
        RunStore store = RunStore.create(folder.resolve("results.duckdb"), SampleRun.run());
        store.close();
        assertThat(code(store::trials)).isEqualTo(Code.NOT_OPEN_FOR_THAT);
    }

    private static Code code(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
        StoreException e = catchThrowableOfType(StoreException.class, call);
        assertThat(e).isNotNull();
        assertThat(e.getMessage()).doesNotContain("\n");
        return e.code();
    }

    private static void run(Path file, String sql) throws SQLException {
        try (Connection c = DriverManager.getConnection("jdbc:duckdb:" + file);
                Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    private static long ask(Path file, String sql) throws SQLException {
        try (Connection c = DriverManager.getConnection("jdbc:duckdb:" + file);
                Statement s = c.createStatement();
                ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getLong(1);
        }
    }
}
