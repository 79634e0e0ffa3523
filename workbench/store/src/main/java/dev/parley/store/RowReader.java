package dev.parley.store;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Turns rows back into the model's records, by column name. */
final class RowReader {
    private RowReader() {}

    /** One row into one record. */
    @FunctionalInterface
    interface Mapping<T> {
        T of(ResultSet row) throws SQLException;
    }

    static <T> List<T> all(Connection connection, String sql, Mapping<T> mapping) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql);
                ResultSet rows = statement.executeQuery()) {
            List<T> all = new ArrayList<>();
            while (rows.next()) {
                all.add(mapping.of(rows));
            }
            return List.copyOf(all);
        }
    }

    static Optional<Run> run(Connection connection) throws SQLException {
        Map<String, String> machine = new LinkedHashMap<>();
        all(
                connection,
                "SELECT * FROM raw.machine ORDER BY position",
                row -> machine.put(row.getString("name"), row.getString("value")) == null);
        List<Technology> technologies = technologies(connection);
        return all(
                        connection,
                        "SELECT * FROM raw.run",
                        row -> new Run(
                                row.getString("id"),
                                instant(row, "started_at_utc"),
                                row.getString("command"),
                                row.getLong("seed"),
                                row.getString("git_commit"),
                                java.util.Collections.unmodifiableMap(machine),
                                row.getString("jdk"),
                                strings(row, "jvm_flags"),
                                technologies))
                .stream()
                .findFirst();
    }

    private static List<Technology> technologies(Connection connection) throws SQLException {
        Map<String, Map<String, String>> settings = new LinkedHashMap<>();
        all(
                connection,
                "SELECT * FROM raw.setting ORDER BY technology, position",
                row -> settings.computeIfAbsent(row.getString("technology"), t -> new LinkedHashMap<>())
                                .put(row.getString("name"), row.getString("value"))
                        == null);
        return all(
                connection,
                "SELECT * FROM raw.technology ORDER BY position",
                row -> new Technology(
                        row.getString("name"),
                        row.getString("title"),
                        Technology.Style.valueOf(row.getString("style")),
                        Optional.ofNullable(row.getString("broker")),
                        strings(row, "components"),
                        row.getString("knows"),
                        settings.getOrDefault(row.getString("name"), Map.of())));
    }

    static TrialSpec spec(ResultSet row) throws SQLException {
        return new TrialSpec(
                row.getInt("trial_id"),
                row.getString("technology"),
                Topology.parse(row.getString("topology")),
                row.getString("work"),
                MessageSpec.parse(row.getString("message")),
                Load.parse(row.getString("load")),
                row.getInt("restart"),
                row.getInt("block"),
                new TrialSpec.Window(
                        Duration.ofNanos(row.getLong("warm_up_least_ns")),
                        Duration.ofNanos(row.getLong("warm_up_most_ns")),
                        Duration.ofNanos(row.getLong("window_ns"))),
                Duration.ofNanos(row.getLong("limit_ns")));
    }

    static TrialRow trial(ResultSet row) throws SQLException {
        return new TrialRow(
                spec(row),
                TrialRow.State.valueOf(row.getString("state")),
                instant(row, "started_at_utc"),
                instant(row, "ended_at_utc"),
                strings(row, "void_reasons"),
                row.getString("what_happened"));
    }

    static SecondRow second(ResultSet row) throws SQLException {
        return new SecondRow(
                row.getInt("trial_id"),
                row.getInt("second"),
                row.getLong("replied"),
                row.getLong("late"),
                row.getLong("wrong"),
                row.getLong("failed"),
                row.getLong("not_sent"),
                row.getBytes(row.findColumn("response_times")));
    }

    static HistogramRow histogram(ResultSet row) throws SQLException {
        return new HistogramRow(
                row.getInt("trial_id"),
                HistogramRow.Kind.valueOf(row.getString("kind")),
                row.getString("subject"),
                row.getBytes(row.findColumn("histogram")));
    }

    static FigureRow figure(ResultSet row) throws SQLException {
        return new FigureRow(
                row.getInt("trial_id"),
                Metric.ofKey(row.getString("metric")),
                row.getString("subject"),
                row.getDouble("value"));
    }

    static LibraryRow library(ResultSet row) throws SQLException {
        return new LibraryRow(
                row.getString("technology"),
                row.getString("name"),
                row.getString("version"),
                has(row, "licence") ? row.getString("licence") : LibraryRow.UNKNOWN,
                row.getLong("bytes"));
    }

    /** Files written before a column was added lack it. */
    private static boolean has(ResultSet row, String column) throws SQLException {
        for (int i = 1; i <= row.getMetaData().getColumnCount(); i++) {
            if (row.getMetaData().getColumnName(i).equals(column)) {
                return true;
            }
        }
        return false;
    }

    private static Instant instant(ResultSet row, String column) throws SQLException {
        return row.getObject(column, LocalDateTime.class).toInstant(ZoneOffset.UTC);
    }

    private static List<String> strings(ResultSet row, String column) throws SQLException {
        return Arrays.stream((Object[]) row.getArray(column).getArray())
                .map(String::valueOf)
                .toList();
    }
}
