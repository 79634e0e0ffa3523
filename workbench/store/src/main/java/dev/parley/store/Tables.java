package dev.parley.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The tables and views as SQL. Raw tables have no UPDATE or DELETE anywhere; views may be dropped and built again at
 * any time.
 *
 * <p>A session is one time that the file was open for writing, counted from 1. Where a resumed run tries a trial again,
 * the rows of both attempts stay, told apart by their sessions, and readers take those of the session in which the
 * trial last ended.
 */
final class Tables {
    /** Goes up by one with every change of a raw table that an older reader would misread. */
    static final int VERSION = 1;

    private static final String[] RAW = {
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.parley (schema_version INTEGER NOT NULL)",
        """
        CREATE TABLE raw.run (id VARCHAR NOT NULL, started_at_utc TIMESTAMP NOT NULL, command VARCHAR NOT NULL,
            seed BIGINT NOT NULL, git_commit VARCHAR NOT NULL, jdk VARCHAR NOT NULL, jvm_flags VARCHAR[] NOT NULL)""",
        "CREATE TABLE raw.machine (position INTEGER NOT NULL, name VARCHAR NOT NULL, value VARCHAR NOT NULL)",
        """
        CREATE TABLE raw.technology (position INTEGER NOT NULL, name VARCHAR NOT NULL, title VARCHAR NOT NULL,
            style VARCHAR NOT NULL, broker VARCHAR, components VARCHAR[] NOT NULL, knows VARCHAR NOT NULL)""",
        """
        CREATE TABLE raw.setting (technology VARCHAR NOT NULL, position INTEGER NOT NULL, name VARCHAR NOT NULL,
            value VARCHAR NOT NULL)""",
        """
        CREATE TABLE raw.library (technology VARCHAR NOT NULL, name VARCHAR NOT NULL, version VARCHAR NOT NULL,
            licence VARCHAR NOT NULL, bytes BIGINT NOT NULL)""",
        "CREATE TABLE raw.study (digest VARCHAR NOT NULL, text VARCHAR NOT NULL)",
        """
        CREATE TABLE raw.plan (trial_id INTEGER NOT NULL, technology VARCHAR NOT NULL, topology VARCHAR NOT NULL,
            work VARCHAR NOT NULL, message VARCHAR NOT NULL, load VARCHAR NOT NULL, restart INTEGER NOT NULL,
            block INTEGER NOT NULL, warm_up_least_ns BIGINT NOT NULL, warm_up_most_ns BIGINT NOT NULL,
            window_ns BIGINT NOT NULL, limit_ns BIGINT NOT NULL)""",
        """
        CREATE TABLE raw.trial (session INTEGER NOT NULL, trial_id INTEGER NOT NULL, state VARCHAR NOT NULL, started_at_utc TIMESTAMP NOT NULL,
            ended_at_utc TIMESTAMP NOT NULL, void_reasons VARCHAR[] NOT NULL, what_happened VARCHAR NOT NULL)""",
        """
        CREATE TABLE raw.second (session INTEGER NOT NULL, trial_id INTEGER NOT NULL, second INTEGER NOT NULL, replied BIGINT NOT NULL,
            late BIGINT NOT NULL, wrong BIGINT NOT NULL, failed BIGINT NOT NULL, not_sent BIGINT NOT NULL,
            response_times BLOB NOT NULL)""",
        """
        CREATE TABLE raw.histogram (session INTEGER NOT NULL, trial_id INTEGER NOT NULL, kind VARCHAR NOT NULL, subject VARCHAR NOT NULL,
            histogram BLOB NOT NULL)""",
        """
        CREATE TABLE raw.figure (session INTEGER NOT NULL, trial_id INTEGER NOT NULL, metric VARCHAR NOT NULL, subject VARCHAR NOT NULL,
            value DOUBLE NOT NULL, unit VARCHAR NOT NULL)""",
    };

    /**
     * A trial planned and never ended has state PLANNED. Each finished one is valid, void, cold or of unknown warmth,
     * by what was stored against it, as {@code JudgedTrial} tells them apart. Figures of a trial that is not valid stay
     * out of the views named valid and window.
     */
    private static final String[] CLEAN = {
        "DROP SCHEMA IF EXISTS clean CASCADE",
        "CREATE SCHEMA clean",
        """
        CREATE VIEW clean.trial AS
            SELECT p.*, t.session, coalesce(t.state, 'PLANNED') AS state, t.started_at_utc, t.ended_at_utc,
                coalesce(t.void_reasons, []) AS void_reasons, coalesce(t.what_happened, '') AS what_happened,
                coalesce(t.state = 'FINISHED' AND len(t.void_reasons) = 0, false) AS valid
            FROM raw.plan p LEFT JOIN raw.trial t USING (trial_id)
            QUALIFY row_number() OVER (PARTITION BY trial_id ORDER BY t.session DESC, t.ended_at_utc DESC) = 1""",
        "CREATE VIEW clean.valid_trial AS SELECT * EXCLUDE (state, void_reasons, what_happened, valid) FROM clean.trial WHERE valid",
        """
        CREATE VIEW clean.void_trial AS
            SELECT * FROM clean.trial WHERE state = 'FINISHED'
                AND len(list_filter(void_reasons,
                    reason -> NOT starts_with(reason, 'cold: ') AND NOT starts_with(reason, 'unknown: '))) > 0""",
        """
        CREATE VIEW clean.cold_trial AS
            SELECT * FROM clean.trial WHERE state = 'FINISHED'
                AND trial_id NOT IN (SELECT trial_id FROM clean.void_trial)
                AND len(list_filter(void_reasons, reason -> starts_with(reason, 'cold: '))) > 0""",
        """
        CREATE VIEW clean.unknown_trial AS
            SELECT * FROM clean.trial WHERE state = 'FINISHED' AND NOT valid
                AND trial_id NOT IN (SELECT trial_id FROM clean.void_trial)
                AND trial_id NOT IN (SELECT trial_id FROM clean.cold_trial)""",
        "CREATE VIEW clean.unfinished_trial AS SELECT * FROM clean.trial WHERE state <> 'FINISHED'",
        """
        CREATE VIEW clean.window_second AS
            SELECT v.technology, v.topology, v.work, v.message, v.load, v.restart, s.* EXCLUDE (session)
            FROM raw.second s JOIN clean.valid_trial v USING (trial_id, session) WHERE s.second >= 0""",
        """
        CREATE VIEW clean.outcome AS
            SELECT technology, topology, work, message, load, restart, trial_id, sum(replied)::BIGINT AS replied,
                sum(late)::BIGINT AS late, sum(wrong)::BIGINT AS wrong, sum(failed)::BIGINT AS failed,
                sum(not_sent)::BIGINT AS not_sent
            FROM clean.window_second GROUP BY ALL""",
        """
        CREATE VIEW clean.figure AS
            SELECT v.technology, v.topology, v.work, v.message, v.load, v.restart, f.* EXCLUDE (session)
            FROM raw.figure f JOIN clean.valid_trial v USING (trial_id, session)""",
    };

    /**
     * The name of each file, and the query for what stands in it: trials as they last ended, and rows of those ends
     * only.
     */
    static final Map<String, String> EXPORTED = exported();

    private static Map<String, String> exported() {
        Map<String, String> tables = new LinkedHashMap<>();
        tables.put("run", "SELECT * FROM raw.run");
        tables.put("machine", "SELECT name, value FROM raw.machine ORDER BY position");
        tables.put("technology", "SELECT * EXCLUDE (position) FROM raw.technology ORDER BY position");
        tables.put("setting", "SELECT technology, name, value FROM raw.setting ORDER BY technology, position");
        tables.put("library", "SELECT * FROM raw.library ORDER BY ALL");
        tables.put("trial", "SELECT * FROM clean.trial ORDER BY trial_id");
        tables.put("outcome", "SELECT * FROM clean.outcome ORDER BY trial_id");
        tables.put(
                "second",
                "SELECT * EXCLUDE (response_times, session), to_base64(response_times) AS response_times FROM ("
                        + current("second", "second") + ")");
        tables.put("figure", "SELECT * EXCLUDE (session) FROM (" + current("figure", "metric, subject") + ")");
        tables.put(
                "histogram",
                "SELECT * EXCLUDE (histogram, session), to_base64(histogram) AS histogram FROM ("
                        + current("histogram", "kind, subject") + ")");
        return java.util.Collections.unmodifiableMap(tables);
    }

    /** Rows of a raw table by trial, without those of an attempt that a later session made again. */
    static String current(String table, String order) {
        return "SELECT r.* FROM raw." + table + " r LEFT JOIN"
                + " (SELECT trial_id, max(session) AS session FROM raw.trial GROUP BY trial_id) e ON r.trial_id ="
                + " e.trial_id"
                + " WHERE e.session IS NULL OR e.session = r.session ORDER BY r.trial_id, " + order;
    }

    private Tables() {}

    static void create(Connection connection) throws SQLException {
        run(connection, RAW);
        try (Statement statement = connection.createStatement()) {
            statement.execute("INSERT INTO raw.parley VALUES (" + VERSION + ")");
        }
        run(connection, CLEAN);
    }

    /** Puts all that stands in the log beside the file into the file. */
    static boolean checkpoint(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.execute("CHECKPOINT");
        }
    }

    static void buildViews(Connection connection) throws SQLException {
        run(connection, CLEAN);
    }

    /** False for a run that keeps no study, which cannot be resumed. */
    static boolean hasStudy(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery(
                        "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'raw' AND table_name = 'study'")) {
            return found.next() && found.getInt(1) == 1;
        }
    }

    /** The version written into the file, or -1 if this is a database of something else. */
    static int versionOf(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            try (ResultSet found = statement.executeQuery(
                    "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'raw' AND table_name = 'parley'")) {
                if (!found.next() || found.getInt(1) == 0) {
                    return -1;
                }
            }
            try (ResultSet version = statement.executeQuery("SELECT max(schema_version) FROM raw.parley")) {
                return version.next() ? version.getInt(1) : -1;
            }
        }
    }

    /** One more than the last session that ended a trial or wrote any row of one. */
    static int nextSession(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet last = statement.executeQuery("""
                        SELECT coalesce(max(session), 0) FROM (SELECT session FROM raw.trial UNION ALL
                            SELECT session FROM raw.second UNION ALL SELECT session FROM raw.histogram UNION ALL
                            SELECT session FROM raw.figure)""")) {
            return last.next() ? last.getInt(1) + 1 : 1;
        }
    }

    private static void run(Connection connection, String[] statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }
}
