package dev.parley.work.lecturers;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.lecturers.Education;
import dev.parley.spi.lecturers.NestedProfile;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;

/**
 * The tables in MySQL, behind a pool of connections. Every value reaches SQL as a parameter. Blocks. A database that is
 * not there is {@link Code#UNAVAILABLE}.
 */
final class MySql implements AutoCloseable {
    private static final String USER = "parley";
    private static final int CONNECTIONS = 10;
    private static final int WAIT_MS = 2000;

    private static final String FLAT = """
            SELECT p.nr, p.id_sdm, p.nama_sdm, p.nidn, p.nip, p.nama_status_aktif, p.nama_status_pegawai, p.jenis_sdm,
                   NULL, NULL, NULL, NULL, NULL, NULL
            FROM profile p
            """;
    private static final String NESTED = """
            SELECT p.nr, p.id_sdm, p.nama_sdm, p.nidn, p.nip, p.nama_status_aktif, p.nama_status_pegawai, p.jenis_sdm,
                   e.id, e.jenjang_pendidikan, e.gelar_akademik, e.bidang_studi, e.nama_perguruan_tinggi, e.tahun_lulus
            FROM profile p LEFT JOIN education e ON e.profile_nr = p.nr
            """;

    private final HikariDataSource pool;
    private final LongAdder reads = new LongAdder();

    MySql(Location at) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url(at));
        config.setUsername(USER);
        config.setPassword(USER);
        // HikariCP's own default, written down
        config.setMaximumPoolSize(CONNECTIONS);
        config.setConnectionTimeout(WAIT_MS);
        // a service starts without its database and says so when it is asked
        config.setInitializationFailTimeout(-1);
        pool = new HikariDataSource(config);
    }

    private static String url(Location at) {
        return "jdbc:mariadb://" + at.host() + ":" + at.port() + "/" + USER + "?connectTimeout=" + WAIT_MS
                + "&socketTimeout=5000";
    }

    /** Prepares what the authentication service begins with: its one account, and no tokens. */
    static void prepareAccounts(Location at) {
        prepare(at, statement -> {
            statement.execute(
                    "CREATE TABLE IF NOT EXISTS account (user VARCHAR(64) PRIMARY KEY, password VARCHAR(64) NOT NULL)");
            statement.execute(
                    "CREATE TABLE IF NOT EXISTS token (token CHAR(64) PRIMARY KEY, user VARCHAR(64) NOT NULL)");
            statement.execute("DELETE FROM token");
            statement.execute("REPLACE INTO account VALUES ('" + LecturersWork.USER + "', SHA2('"
                    + LecturersWork.PASSWORD + "', 256))");
        });
    }

    /**
     * Prepares the table of profiles and, where it is wanted, the one of their education. Tables that have another
     * number of rows are filled anew.
     */
    static void prepareProfiles(Location at, People people, boolean withEducation) {
        prepare(at, statement -> {
            statement.execute("""
                    CREATE TABLE IF NOT EXISTS profile (nr INT PRIMARY KEY, id_sdm CHAR(36) NOT NULL UNIQUE,
                        nama_sdm VARCHAR(100) NOT NULL, nidn BIGINT NOT NULL, nip BIGINT NOT NULL,
                        nama_status_aktif VARCHAR(30) NOT NULL, nama_status_pegawai VARCHAR(30) NOT NULL,
                        jenis_sdm VARCHAR(30) NOT NULL, INDEX (nama_sdm))""");
            if (count(statement, "profile") != People.COUNT) {
                statement.execute("DELETE FROM profile");
                insertProfiles(statement.getConnection(), people.nested());
            }
            if (!withEducation) {
                return;
            }
            statement.execute("""
                    CREATE TABLE IF NOT EXISTS education (profile_nr INT NOT NULL, position INT NOT NULL,
                        id CHAR(36) NOT NULL, jenjang_pendidikan VARCHAR(10) NOT NULL, gelar_akademik VARCHAR(20) NOT NULL,
                        bidang_studi VARCHAR(60) NOT NULL, nama_perguruan_tinggi VARCHAR(100) NOT NULL,
                        tahun_lulus INT NOT NULL, PRIMARY KEY (profile_nr, position))""");
            if (count(statement, "education") != People.EDUCATION_COUNT) {
                statement.execute("DELETE FROM education");
                insertEducation(statement.getConnection(), people.nested());
            }
        });
    }

    private interface Statements {
        void execute(Statement statement) throws SQLException;
    }

    /** Fills the tables in one transaction, so that a run that is ended here leaves nothing half filled. */
    private static void prepare(Location at, Statements statements) {
        try (Connection connection = java.sql.DriverManager.getConnection(url(at), USER, USER);
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statements.execute(statement);
            connection.commit();
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    private static int count(Statement statement, String table) throws SQLException {
        try (ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM " + table)) {
            rows.next();
            return rows.getInt(1);
        }
    }

    private static void insertProfiles(Connection connection, List<NestedProfile> people) throws SQLException {
        try (PreparedStatement profile =
                connection.prepareStatement("INSERT INTO profile VALUES (?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int nr = 0; nr < people.size(); nr++) {
                NestedProfile one = people.get(nr);
                set(
                        profile,
                        nr,
                        one.id_sdm(),
                        one.nama_sdm(),
                        one.nidn(),
                        one.nip(),
                        one.nama_status_aktif(),
                        one.nama_status_pegawai(),
                        one.jenis_sdm());
                profile.addBatch();
            }
            profile.executeBatch();
        }
    }

    private static void insertEducation(Connection connection, List<NestedProfile> people) throws SQLException {
        try (PreparedStatement education =
                connection.prepareStatement("INSERT INTO education VALUES (?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int nr = 0; nr < people.size(); nr++) {
                int position = 0;
                for (Education e : people.get(nr).pendidikan_formal()) {
                    set(
                            education,
                            nr,
                            position++,
                            e.id(),
                            e.jenjang_pendidikan(),
                            e.gelar_akademik(),
                            e.bidang_studi(),
                            e.nama_perguruan_tinggi(),
                            e.tahun_lulus());
                    education.addBatch();
                }
            }
            education.executeBatch();
        }
    }

    private static void set(PreparedStatement statement, Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            statement.setObject(i + 1, values[i]);
        }
    }

    /**
     * Profiles by number.
     *
     * @param withEducation where false, profiles come without their education
     */
    Map<Integer, NestedProfile> page(int from, int count, boolean withEducation) {
        String rows = "WHERE p.nr >= ? AND p.nr < ? ORDER BY p.nr";
        return select(withEducation ? NESTED + rows + ", e.position" : FLAT + rows, from, (long) from + count);
    }

    Optional<NestedProfile> withId(String id) {
        return select(FLAT + "WHERE p.id_sdm = ?", id).values().stream().findFirst();
    }

    List<NestedProfile> named(String name) {
        return List.copyOf(
                select(FLAT + "WHERE p.nama_sdm = ? ORDER BY p.nr", name).values());
    }

    private Map<Integer, NestedProfile> select(String sql, Object... values) {
        reads.increment();
        Map<Integer, NestedProfile> profiles = new TreeMap<>();
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, values);
            try (ResultSet row = statement.executeQuery()) {
                List<Education> education = new ArrayList<>();
                boolean more = row.next();
                while (more) {
                    int nr = row.getInt(1);
                    NestedProfile head = new NestedProfile(
                            row.getString(2),
                            row.getString(3),
                            row.getLong(4),
                            row.getLong(5),
                            row.getString(6),
                            row.getString(7),
                            row.getString(8),
                            List.of());
                    education.clear();
                    do {
                        if (row.getString(9) != null) {
                            education.add(new Education(
                                    row.getString(9),
                                    row.getString(10),
                                    row.getString(11),
                                    row.getString(12),
                                    row.getString(13),
                                    row.getInt(14)));
                        }
                        more = row.next();
                    } while (more && row.getInt(1) == nr);
                    profiles.put(
                            nr,
                            new NestedProfile(
                                    head.id_sdm(),
                                    head.nama_sdm(),
                                    head.nidn(),
                                    head.nip(),
                                    head.nama_status_aktif(),
                                    head.nama_status_pegawai(),
                                    head.jenis_sdm(),
                                    education));
                }
            }
            return profiles;
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    boolean isAccount(String user, String password) {
        return first("SELECT user FROM account WHERE user = ? AND password = SHA2(?, 256)", user, password)
                .isPresent();
    }

    Optional<String> userOf(String token) {
        return first("SELECT user FROM token WHERE token = ?", token);
    }

    private Optional<String> first(String sql, Object... values) {
        reads.increment();
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, values);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? Optional.of(row.getString(1)) : Optional.empty();
            }
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    void keep(String token, String user) {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement("INSERT INTO token VALUES (?, ?)")) {
            set(statement, token, user);
            statement.executeUpdate();
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    /** Queries since the start: what a hit in the cache does not add to. */
    long reads() {
        return reads.sum();
    }

    private static CallException unavailable(SQLException e) {
        return new CallException(Code.UNAVAILABLE, "MySQL: " + e.getMessage(), e);
    }

    /** HikariCP's own figures of its pool. */
    Map<String, Double> figures() {
        HikariPoolMXBean figures = pool.getHikariPoolMXBean();
        return figures == null
                ? Map.of()
                : Map.of(
                        "pool_active", (double) figures.getActiveConnections(),
                        "pool_idle", (double) figures.getIdleConnections(),
                        "pool_waiting", (double) figures.getThreadsAwaitingConnection());
    }

    @Override
    public void close() {
        pool.close();
    }
}
