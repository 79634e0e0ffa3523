package dev.parley.backend;

import dev.parley.process.Ports;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * MySQL in the form that Debian ships: MariaDB, of the PATH or from Debian's packages unpacked below the user's cache
 * folder. Its settings are its own defaults, except that it listens on loopback only.
 */
final class MySqlBackend implements Backend {
    private static final String HOW =
            "install mariadb-server, or name a running one with --backend mysql=host:port (user, password and database: "
                    + Database.NAME + ")";

    /**
     * What makes an empty data folder a server's, in this order. Source: mariadb-install-db, which also fills help
     * tables and needs programs of the client's package.
     */
    private static final List<String> SYSTEM_TABLES =
            List.of("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql");

    /** @param share the folder of error messages and of the {@link #SYSTEM_TABLES} */
    private record Installed(String server, Path share, Map<String, String> environment) {}

    @Override
    public String name() {
        return "mysql";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        return start(folder, Ports.free(), told);
    }

    /** Starts a server on a given port with what is in the folder, so that a server can come back. */
    Running start(Path folder, int port, Consumer<String> told) throws InterruptedException {
        Installed installed = find(told);
        Path own = Database.folder(name(), folder);
        Path data = own.resolve("data");
        Path users = own.resolve("users.sql");
        try {
            if (!Files.exists(data.resolve("mysql"))) {
                Files.createDirectories(data);
                initialise(installed, own, data);
            }
            Files.writeString(users, """
                    CREATE DATABASE IF NOT EXISTS %1$s CHARACTER SET utf8mb4;
                    CREATE USER IF NOT EXISTS '%1$s'@'127.0.0.1' IDENTIFIED BY '%1$s';
                    GRANT ALL ON %1$s.* TO '%1$s'@'127.0.0.1';
                    """.formatted(Database.NAME));
        } catch (IOException e) {
            throw new BackendUnavailable("mysql: " + own + " cannot be written: " + e.getMessage(), e);
        }
        told.accept("starting MariaDB");
        List<String> command = base(installed, data);
        command.addAll(List.of(
                "--port=" + port,
                "--bind-address=127.0.0.1",
                // below the data folder, since a socket's path may not have more than 107 characters
                "--socket=mysql.sock",
                "--pid-file=mysql.pid",
                "--skip-name-resolve",
                "--init-file=" + users));
        Warden warden = Warden.start(name(), own, Warden.End.KILL, command, installed.environment());
        warden.await(() -> roundTrip(port), Database.TO_START);
        return warden.running(port, version(port));
    }

    private static List<String> base(Installed installed, Path data) {
        List<String> command = new ArrayList<>(List.of(
                installed.server(), "--no-defaults", "--datadir=" + data, "--lc-messages-dir=" + installed.share()));
        if (System.getProperty("user.name", "").equals("root")) {
            // MariaDB runs as root only where the command line says so
            command.add("--user=root");
        }
        return command;
    }

    private void initialise(Installed installed, Path own, Path data) throws IOException, InterruptedException {
        StringBuilder sql = new StringBuilder("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n");
        for (String tables : SYSTEM_TABLES) {
            sql.append(Files.readString(installed.share().resolve(tables))).append('\n');
        }
        Path script = own.resolve("system.sql");
        Files.writeString(script, sql);
        List<String> command = base(installed, data);
        command.addAll(List.of("--bootstrap", "--skip-grant-tables", "--loose-skip-innodb-read-only-compressed"));
        ProcessBuilder program = new ProcessBuilder(command).redirectInput(script.toFile());
        program.environment().putAll(installed.environment());
        Database.prepare(name(), program, own.resolve("bootstrap.log"));
    }

    private static Installed find(Consumer<String> told) throws InterruptedException {
        Optional<String> server = DebianPackages.onPath("mariadbd");
        Optional<Path> share = Stream.of("/usr/share/mysql", "/usr/share/mariadb")
                .map(Path::of)
                .filter(folder -> Files.isRegularFile(folder.resolve(SYSTEM_TABLES.getFirst())))
                .findFirst();
        if (server.isPresent() && share.isPresent()) {
            return new Installed(server.get(), share.get(), Map.of());
        }
        Path root = new DebianPackages("mysql", "8 MB", HOW).unpackedWithDependencies("mariadb-server-core", told);
        return new Installed(
                root.resolve("usr/sbin/mariadbd").toString(),
                root.resolve("usr/share/mysql"),
                DebianPackages.libraries(root));
    }

    private static Connection connect(int port) throws SQLException {
        return DriverManager.getConnection(
                "jdbc:mariadb://127.0.0.1:" + port + "/" + Database.NAME + "?connectTimeout=2000&socketTimeout=10000",
                Database.NAME,
                Database.NAME);
    }

    private static void roundTrip(int port) throws SQLException {
        try (Connection connection = connect(port);
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TEMPORARY TABLE probe (n int) ENGINE=InnoDB");
            statement.execute("INSERT INTO probe VALUES (42)");
            try (ResultSet row = statement.executeQuery("SELECT n FROM probe")) {
                if (!row.next() || row.getInt(1) != 42) {
                    throw new SQLException("what was written could not be read");
                }
            }
        }
    }

    private static String version(int port) {
        try (Connection connection = connect(port)) {
            // 10.11.19-MariaDB-0+deb12u1
            return connection.getMetaData().getDatabaseProductVersion();
        } catch (SQLException e) {
            throw new BackendUnavailable("mysql: it answered and then did not: " + e.getMessage(), e);
        }
    }
}
