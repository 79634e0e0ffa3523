package dev.parley.store;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Run;
import dev.parley.model.SecondRow;
import dev.parley.model.Technology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;

/** Turns the model's records into INSERTs. The caller holds the transaction. */
final class RowWriter {
    private final Connection connection;

    private final int session;

    RowWriter(Connection connection, int session) {
        this.connection = connection;
        this.session = session;
    }

    void run(Run run) throws SQLException {
        insert("run", List.<Object[]>of(new Object[] {
            run.id(), run.startedAt(), run.command(), run.seed(), run.commit(), run.jdk(), run.jvmFlags()
        }));
        insert("machine", numbered(run.machine()));
        List<Technology> technologies = run.technologies();
        for (int i = 0; i < technologies.size(); i++) {
            technology(i, technologies.get(i));
        }
    }

    private void technology(int position, Technology t) throws SQLException {
        insert("technology", List.<Object[]>of(new Object[] {
            position, t.name(), t.title(), t.style().name(), t.broker(), t.components(), t.knows()
        }));
        insert(
                "setting",
                numbered(t.settings()).stream()
                        .map(row -> new Object[] {t.name(), row[0], row[1], row[2]})
                        .toList());
    }

    void study(StoredStudy study) throws SQLException {
        insert("study", List.<Object[]>of(new Object[] {study.digest(), study.text()}));
    }

    void plan(List<TrialSpec> specs) throws SQLException {
        insert(
                "plan",
                specs.stream()
                        .map(s -> new Object[] {
                            s.id(),
                            s.technology(),
                            s.topology().text(),
                            s.work(),
                            s.message().toString(),
                            s.load().toString(),
                            s.restart(),
                            s.block(),
                            s.window().warmUpLeast().toNanos(),
                            s.window().warmUpMost().toNanos(),
                            s.window().length().toNanos(),
                            s.limit().toNanos()
                        })
                        .toList());
    }

    void trial(TrialRow t) throws SQLException {
        insert("trial", List.<Object[]>of(new Object[] {
            session, t.spec().id(), t.state().name(), t.startedAt(), t.endedAt(), t.voidReasons(), t.message()
        }));
    }

    void seconds(List<SecondRow> rows) throws SQLException {
        insert(
                "second",
                rows.stream()
                        .map(s -> new Object[] {
                            session,
                            s.trialId(),
                            s.second(),
                            s.replied(),
                            s.late(),
                            s.wrong(),
                            s.failed(),
                            s.notSent(),
                            s.responseTimes()
                        })
                        .toList());
    }

    void histograms(List<HistogramRow> rows) throws SQLException {
        insert(
                "histogram",
                rows.stream()
                        .map(h -> new Object[] {session, h.trialId(), h.kind().name(), h.subject(), h.histogram()})
                        .toList());
    }

    void figures(List<FigureRow> rows) throws SQLException {
        insert(
                "figure",
                rows.stream()
                        .map(f -> new Object[] {
                            session,
                            f.trialId(),
                            f.metric().key(),
                            f.subject(),
                            f.value(),
                            f.metric().unit()
                        })
                        .toList());
    }

    void libraries(List<LibraryRow> rows) throws SQLException {
        insert(
                "library",
                rows.stream()
                        .map(l -> new Object[] {l.technology(), l.name(), l.version(), l.licence(), l.bytes()})
                        .toList());
    }

    private static List<Object[]> numbered(Map<String, String> values) {
        var position = new java.util.concurrent.atomic.AtomicInteger();
        return values.entrySet().stream()
                .map(e -> new Object[] {position.getAndIncrement(), e.getKey(), e.getValue()})
                .toList();
    }

    private void insert(String table, List<Object[]> rows) throws SQLException {
        if (rows.isEmpty()) {
            return;
        }
        String marks = "?, ".repeat(rows.getFirst().length - 1) + "?";
        try (PreparedStatement statement =
                connection.prepareStatement("INSERT INTO raw." + table + " VALUES (" + marks + ")")) {
            for (Object[] row : rows) {
                for (int i = 0; i < row.length; i++) {
                    set(statement, i + 1, row[i]);
                }
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    private void set(PreparedStatement statement, int index, Object value) throws SQLException {
        switch (value) {
            case byte[] bytes -> statement.setBytes(index, bytes);
            case Instant at -> statement.setObject(index, LocalDateTime.ofInstant(at, ZoneOffset.UTC));
            case List<?> list -> statement.setArray(index, connection.createArrayOf("VARCHAR", list.toArray()));
            case java.util.Optional<?> maybe -> statement.setObject(index, maybe.orElse(null));
            default -> statement.setObject(index, value);
        }
    }
}
