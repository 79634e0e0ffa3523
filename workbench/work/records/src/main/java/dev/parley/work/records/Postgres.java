package dev.parley.work.records;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.Photo;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

/**
 * One service's tables in PostgreSQL, in a schema of its own, behind a pool of connections. Every value reaches SQL as
 * a parameter; each change is one statement and so one transaction. Blocks. A database that is not there is
 * {@link Code#UNAVAILABLE}.
 */
final class Postgres implements AutoCloseable {
    private static final String USER = "parley";
    private static final int CONNECTIONS = 10;
    private static final int WAIT_MS = 2000;

    private static final String UPSERT_ENTRY = "INSERT INTO entry (id, title, author, body) VALUES (?, ?, ?, ?)"
            + " ON CONFLICT (id) DO UPDATE SET title = EXCLUDED.title, author = EXCLUDED.author, body = EXCLUDED.body";
    private static final String UPSERT_PHOTO = "INSERT INTO photo (name, content) VALUES (?, ?)"
            + " ON CONFLICT (name) DO UPDATE SET content = EXCLUDED.content";

    private final HikariDataSource pool;

    /** @param service whose schema it is */
    Postgres(Location at, String service) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url(at, service));
        config.setUsername(USER);
        config.setPassword(USER);
        // HikariCP's own default, written down
        config.setMaximumPoolSize(CONNECTIONS);
        config.setConnectionTimeout(WAIT_MS);
        // a service starts without its database and says so when it is asked
        config.setInitializationFailTimeout(-1);
        pool = new HikariDataSource(config);
    }

    private static String url(Location at, String service) {
        return "jdbc:postgresql://" + at.host() + ":" + at.port() + "/" + USER + "?connectTimeout=2&socketTimeout=10"
                + "&currentSchema=" + schema(service);
    }

    /** A service's name has letters, digits and hyphens. */
    private static String schema(String service) {
        return "parley_" + service.replace('-', '_');
    }

    /** Prepares one service's tables as every boot begins: the base records, the photos, and nothing else. */
    static void prepare(Location at, String service) {
        String schema = schema(service);
        try (Connection connection = DriverManager.getConnection(url(at, service), USER, USER);
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE");
            statement.execute("CREATE SCHEMA " + schema);
            statement.execute("""
                    CREATE TABLE entry (id uuid PRIMARY KEY, title varchar(200) NOT NULL, author varchar(100) NOT NULL,
                        body text NOT NULL)""");
            statement.execute("CREATE TABLE photo (name varchar(200) PRIMARY KEY, content bytea NOT NULL)");
            // compressing what cannot be compressed is of no use
            statement.execute("ALTER TABLE photo ALTER COLUMN content SET STORAGE EXTERNAL");
            try (PreparedStatement entries = connection.prepareStatement(UPSERT_ENTRY);
                    PreparedStatement photos = connection.prepareStatement(UPSERT_PHOTO)) {
                for (Entry entry : Contents.base()) {
                    set(entries, entry);
                    entries.addBatch();
                }
                entries.executeBatch();
                for (int i = 0; i < Contents.PHOTOS; i++) {
                    Photo photo = Contents.photo(i, Contents.PHOTO_BYTES);
                    photos.setString(1, photo.name());
                    photos.setBytes(2, photo.content());
                    photos.executeUpdate();
                }
            }
            connection.commit();
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    private static void set(PreparedStatement statement, Entry entry) throws SQLException {
        statement.setObject(1, UUID.fromString(entry.id()));
        statement.setString(2, entry.title());
        statement.setString(3, entry.author());
        statement.setString(4, entry.body());
    }

    List<Entry> all() {
        return with("SELECT id, title, author, body FROM entry ORDER BY id", statement -> {
            List<Entry> entries = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    entries.add(new Entry(row.getString(1), row.getString(2), row.getString(3), row.getString(4)));
                }
            }
            return entries;
        });
    }

    void add(Entry entry) {
        with(UPSERT_ENTRY, statement -> {
            set(statement, entry);
            return statement.executeUpdate();
        });
    }

    /** @return whether there was such a record */
    boolean edit(Entry entry) {
        return with("UPDATE entry SET title = ?, author = ?, body = ? WHERE id = ?", statement -> {
            statement.setString(1, entry.title());
            statement.setString(2, entry.author());
            statement.setString(3, entry.body());
            statement.setObject(4, UUID.fromString(entry.id()));
            return statement.executeUpdate() == 1;
        });
    }

    /** @return whether there was such a record */
    boolean delete(UUID id) {
        return with("DELETE FROM entry WHERE id = ?", statement -> {
            statement.setObject(1, id);
            return statement.executeUpdate() == 1;
        });
    }

    void keep(Photo photo) {
        with(UPSERT_PHOTO, statement -> {
            statement.setString(1, photo.name());
            statement.setBytes(2, photo.content());
            return statement.executeUpdate();
        });
    }

    Optional<Photo> photo(String name) {
        return with("SELECT content FROM photo WHERE name = ?", statement -> {
            statement.setString(1, name);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? Optional.of(new Photo(name, row.getBytes(1))) : Optional.empty();
            }
        });
    }

    private interface Use<T> {
        T of(PreparedStatement statement) throws SQLException;
    }

    private <T> T with(String sql, Use<T> use) {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            return use.of(statement);
        } catch (SQLException e) {
            throw unavailable(e);
        }
    }

    private static CallException unavailable(SQLException e) {
        return new CallException(Code.UNAVAILABLE, "PostgreSQL: " + e.getMessage(), e);
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
