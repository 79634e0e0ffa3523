package dev.parley.store;

import dev.parley.model.BadInput;
import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.StoreException.Code;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The file of one run. {@link #create} and {@link #resume} open it for appending, {@link #open} for reading. Each
 * {@code append} is one transaction and is on disk when it returns: a writer that is killed leaves a file with every
 * append that had returned, and nothing of the one that had not. Reading waits for no one, but a file that another
 * process writes cannot be opened.
 *
 * <p>Safe from any thread; calls block on the disk. Everything throws {@link StoreException}.
 */
public final class RunStore implements AutoCloseable {
    /** What DuckDB says of a file that ends too early, or whose contents are not what it wrote. */
    private static final List<String> OF_DAMAGE = List.of(
            "could not read",
            "checksum",
            "corrupt",
            "serializ",
            "replaying wal",
            "catalog error",
            "internal error",
            "fatal error",
            "invalidated");

    private final Path file;
    private final Connection connection;
    private final @Nullable RowWriter writer;
    private final ReentrantLock lock = new ReentrantLock();

    private RunStore(Path file, Connection connection, @Nullable RowWriter writer) {
        this.file = file;
        this.connection = connection;
        this.writer = writer;
    }

    /**
     * A new file with the run's description in it. Its folder must be there. The file is there whole or not at all: a
     * writer that is killed while it makes one leaves another name, which the next one takes.
     */
    public static RunStore create(Path file, Run run) {
        return create(file, rows -> rows.run(run));
    }

    /** The same of a run that can be resumed, with its study and the trials to come, in order. */
    public static RunStore create(Path file, Run run, StoredStudy study, List<TrialSpec> specs) {
        return create(file, rows -> {
            rows.run(run);
            rows.study(study);
            rows.plan(specs);
        });
    }

    private static RunStore create(Path file, Writing first) {
        if (Files.exists(file)) {
            throw new StoreException(
                    Code.ALREADY_THERE, file + ": already there (expected: the name of a file to be created)", null);
        }
        Path folder = file.toAbsolutePath().getParent();
        if (folder == null || !Files.isDirectory(folder)) {
            throw new StoreException(Code.NOT_WRITABLE, file + ": its folder does not exist or is no folder", null);
        }
        if (!Files.isWritable(folder)) {
            throw new StoreException(Code.NOT_WRITABLE, file + ": its folder cannot be written", null);
        }
        Path making = file.resolveSibling(file.getFileName() + ".new");
        try {
            Files.deleteIfExists(making);
            Files.deleteIfExists(making.resolveSibling(making.getFileName() + ".wal"));
            make(making, first);
            Files.move(making, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new StoreException(Code.NOT_WRITABLE, file + ": cannot be made: " + e.getMessage(), e);
        }
        Connection connection = connect(file, false);
        return new RunStore(file, connection, new RowWriter(connection, 1));
    }

    /** Makes a file with its tables and its first rows, and closes it. */
    private static void make(Path file, Writing first) {
        Connection connection = connect(file, false);
        try (RunStore store = new RunStore(file, connection, new RowWriter(connection, 1))) {
            store.write(rows -> {
                Tables.create(connection);
                first.run(rows);
            });
            store.read(() -> Tables.checkpoint(connection));
        }
    }

    /** An existing file, for appending the trials that are missing: see {@link #unfinished}. */
    public static RunStore resume(Path file) {
        return existing(file, false);
    }

    /** An existing file, for reading only; also one whose writer was killed. */
    public static RunStore open(Path file) {
        return existing(file, true);
    }

    /** Stores the study and the trials to come, in order: both or neither is on disk. */
    public void appendPlan(StoredStudy study, List<TrialSpec> specs) {
        write(rows -> {
            rows.study(study);
            rows.plan(specs);
        });
    }

    /** Stores the trials to come, in order, of a run that cannot be resumed. */
    public void appendPlan(List<TrialSpec> specs) {
        write(rows -> rows.plan(specs));
    }

    public void append(TrialRow trial) {
        write(rows -> rows.trial(trial));
    }

    /** Stores a trial's end and all of its rows in one transaction: after a crash all of it is there, or none. */
    public void append(
            TrialRow trial, List<SecondRow> seconds, List<HistogramRow> histograms, List<FigureRow> figures) {
        write(rows -> {
            rows.seconds(seconds);
            rows.histograms(histograms);
            rows.figures(figures);
            rows.trial(trial);
        });
    }

    public void append(SecondRow second) {
        appendSeconds(List.of(second));
    }

    public void appendSeconds(List<SecondRow> seconds) {
        write(rows -> rows.seconds(seconds));
    }

    public void append(HistogramRow histogram) {
        appendHistograms(List.of(histogram));
    }

    public void appendHistograms(List<HistogramRow> histograms) {
        write(rows -> rows.histograms(histograms));
    }

    public void append(FigureRow figure) {
        appendFigures(List.of(figure));
    }

    public void appendFigures(List<FigureRow> figures) {
        write(rows -> rows.figures(figures));
    }

    /** Stores what the services of a technology are made of. */
    public void appendLibraries(List<LibraryRow> libraries) {
        write(rows -> rows.libraries(libraries));
    }

    /** Builds the cleaned views anew from the raw rows, which stay as they are. Can be run again at any time. */
    public void buildViews() {
        write(rows -> Tables.buildViews(connection));
    }

    public Path file() {
        return file;
    }

    public Run run() {
        return read(() -> RowReader.run(connection))
                .orElseThrow(() -> new StoreException(Code.NOT_A_STORE, file + ": holds no run", null));
    }

    /**
     * Writes the run as files of one format, a file a table: {@code run}, {@code trial}, {@code outcome},
     * {@code second}, {@code figure}, {@code histogram} (HdrHistogram V2 compressed, in Base64) and more.
     *
     * @param folder an existing one; files of the same names are written over
     * @return the files
     */
    public List<Path> export(Path folder, ExportFormat format) {
        List<Path> files = new java.util.ArrayList<>();
        Tables.EXPORTED.forEach((name, query) -> {
            Path written = folder.resolve(name + "." + format.suffix());
            read(() -> {
                try (java.sql.Statement statement = connection.createStatement()) {
                    return statement.execute("COPY (" + query + ") TO '"
                            + written.toAbsolutePath().toString().replace("'", "''") + "' (" + format.options() + ")");
                }
            });
            files.add(written);
        });
        return List.copyOf(files);
    }

    /** What was asked for; empty for a run that was stopped before it had a plan. */
    public Optional<StoredStudy> study() {
        return read(() -> Tables.hasStudy(connection)
                        ? RowReader.all(
                                connection,
                                "SELECT * FROM raw.study",
                                row -> new StoredStudy(row.getString("digest"), row.getString("text")))
                        : List.<StoredStudy>of())
                .stream()
                .findFirst();
    }

    /** Every trial that was planned, in order. */
    public List<TrialSpec> plan() {
        return read(() -> RowReader.all(connection, "SELECT * FROM raw.plan ORDER BY trial_id", RowReader::spec));
    }

    /**
     * Trials that ended, well or not, in the order of the plan. A trial tried again after a failure is there with its
     * last end.
     */
    public List<TrialRow> trials() {
        return read(() -> RowReader.all(connection, """
                SELECT p.*, t.state, t.started_at_utc, t.ended_at_utc, t.void_reasons, t.what_happened
                FROM raw.plan p JOIN raw.trial t USING (trial_id)
                QUALIFY row_number() OVER (PARTITION BY t.trial_id ORDER BY t.session DESC, t.ended_at_utc DESC) = 1
                ORDER BY trial_id""", RowReader::trial));
    }

    /** Planned trials without a finished end: what a resumed run still has to do. */
    public List<TrialSpec> unfinished() {
        return read(() -> RowReader.all(connection, """
                SELECT * FROM raw.plan
                WHERE trial_id NOT IN (SELECT trial_id FROM raw.trial WHERE state = 'FINISHED')
                ORDER BY trial_id""", RowReader::spec));
    }

    /** Seconds of all trials, warm-up (negative) included, by trial and second. */
    public List<SecondRow> seconds() {
        return read(() -> RowReader.all(connection, Tables.current("second", "second"), RowReader::second));
    }

    public List<HistogramRow> histograms() {
        return read(
                () -> RowReader.all(connection, Tables.current("histogram", "kind, subject"), RowReader::histogram));
    }

    public List<FigureRow> figures() {
        return read(() -> RowReader.all(connection, Tables.current("figure", "metric, subject"), RowReader::figure));
    }

    public List<LibraryRow> libraries() {
        return read(() -> RowReader.all(
                connection, "SELECT * FROM raw.library ORDER BY technology, bytes DESC, name", RowReader::library));
    }

    @Override
    public void close() {
        lock.lock();
        try {
            connection.close();
        } catch (SQLException e) {
            throw explained(file, e);
        } finally {
            lock.unlock();
        }
    }

    /** Statements under the store's lock. */
    @FunctionalInterface
    private interface Reading<T> {
        T run() throws SQLException;
    }

    /** Statements in one transaction. */
    @FunctionalInterface
    private interface Writing {
        void run(RowWriter rows) throws SQLException;
    }

    private <T> T read(Reading<T> reading) {
        lock.lock();
        try {
            return reading.run();
        } catch (SQLException e) {
            throw explained(file, e);
        } finally {
            lock.unlock();
        }
    }

    private void write(Writing writing) {
        RowWriter rows = writer;
        if (rows == null) {
            throw new StoreException(Code.NOT_OPEN_FOR_THAT, file + ": opened for reading only", null);
        }
        lock.lock();
        try {
            // the driver's own switch: its batches start a transaction of their own where this is on
            connection.setAutoCommit(false);
            try {
                writing.run(rows);
                connection.commit();
                connection.setAutoCommit(true);
            } catch (SQLException e) {
                undo(e);
                throw e;
            }
        } catch (SQLException e) {
            throw explained(file, e);
        } finally {
            lock.unlock();
        }
    }

    private void undo(SQLException why) {
        try {
            connection.rollback();
            connection.setAutoCommit(true);
        } catch (SQLException e) {
            // after a failed commit there is nothing left to roll back; the first fault is the one to tell
            why.addSuppressed(e);
        }
    }

    private void closeAfter(RuntimeException why) {
        try {
            close();
        } catch (StoreException e) {
            why.addSuppressed(e);
        }
    }

    private static RunStore existing(Path file, boolean readOnly) {
        if (!Files.exists(file)) {
            throw new StoreException(Code.MISSING, file + ": no such file (expected: results.duckdb of a run)", null);
        }
        if (!Files.isRegularFile(file)) {
            throw new StoreException(
                    Code.NOT_A_STORE, file + ": not a regular file (expected: results.duckdb of a run)", null);
        }
        RunStore store = new RunStore(file, connect(file, readOnly), null);
        try {
            int version = store.read(() -> Tables.versionOf(store.connection));
            if (version < 0) {
                throw new StoreException(
                        Code.NOT_A_STORE,
                        file + ": a DuckDB file, but not of a run (expected: results.duckdb of a run)",
                        null);
            }
            if (version > Tables.VERSION) {
                throw new StoreException(
                        Code.NEWER_SCHEMA,
                        file + ": schema version " + version + " (expected: at most " + Tables.VERSION
                                + "); read it with the Parley that wrote it, or a later one",
                        null);
            }
            return readOnly
                    ? store
                    : new RunStore(
                            file,
                            store.connection,
                            new RowWriter(store.connection, store.read(() -> Tables.nextSession(store.connection))));
        } catch (StoreException e) {
            store.closeAfter(e);
            throw e;
        }
    }

    private static Connection connect(Path file, boolean readOnly) {
        // the driver takes what follows a semicolon for settings
        if (file.toString().contains(";")) {
            throw new BadInput("store", file, "a path without a semicolon");
        }
        Properties settings = new Properties();
        if (readOnly) {
            settings.setProperty("duckdb.read_only", "true");
        }
        // Next to a measurement the database must be small and quiet: one thread, and nothing fetched from the network.
        settings.setProperty("threads", "1");
        settings.setProperty("autoinstall_known_extensions", "false");
        settings.setProperty("autoload_known_extensions", "false");
        try {
            return DriverManager.getConnection("jdbc:duckdb:" + file.toAbsolutePath(), settings);
        } catch (SQLException e) {
            throw explained(file, e);
        }
    }

    /** DuckDB tells faults apart by text only. */
    private static StoreException explained(Path file, SQLException e) {
        String text = String.valueOf(e.getMessage());
        String low = text.toLowerCase(Locale.ROOT);
        String oneLine = text.lines()
                .filter(l -> !l.contains("closed pending query"))
                .findFirst()
                .orElse("");
        if (low.contains("could not set lock") || low.contains("different configuration")) {
            return new StoreException(
                    Code.LOCKED, file + ": in use by another process, or open in this one; wait until it ends", e);
        }
        // DuckDB asks for an extension where the file is one of SQLite
        if (low.contains("not a valid duckdb database") || low.contains("extension") && low.contains("install")) {
            return new StoreException(
                    Code.NOT_A_STORE, file + ": not a DuckDB file (expected: results.duckdb of a run)", e);
        }
        if (low.contains("newer version of duckdb") || low.contains("version number")) {
            return new StoreException(Code.NEWER_SCHEMA, file + ": " + oneLine, e);
        }
        if (low.contains("no space left")) {
            return new StoreException(Code.NOT_WRITABLE, file + ": the disk is full", e);
        }
        if (low.contains("permission denied")
                || low.contains("read-only file system")
                || low.contains("cannot open file")
                || low.contains("could not write")) {
            return new StoreException(Code.NOT_WRITABLE, file + ": cannot be opened or written: " + oneLine, e);
        }
        if (low.contains("connection was closed") || low.contains("connection has been closed")) {
            return new StoreException(Code.NOT_OPEN_FOR_THAT, file + ": already closed", e);
        }
        if (OF_DAMAGE.stream().anyMatch(low::contains)) {
            return new StoreException(
                    Code.DAMAGED,
                    file + ": damaged or cut short, so that it cannot be read (expected: the whole results.duckdb of a"
                            + " run; copy it again, or measure again)",
                    e);
        }
        return new StoreException(Code.FAILED, file + ": " + oneLine, e);
    }
}
