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
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * PostgreSQL: the one of the PATH or of {@code /usr/lib/postgresql}, or else Debian's packages unpacked below the
 * user's cache folder. Its settings are those that initdb writes, except that it listens on loopback only. Started by
 * root, which it refuses, it runs as nobody.
 */
final class PostgresBackend implements Backend {
    private static final String HOW =
            "install postgresql, or name a running one with --backend postgres=host:port (user, password and database: "
                    + Database.NAME + ")";
    private static final Path INSTALLED = Path.of("/usr/lib/postgresql");
    private static final Pattern NUMBER = Pattern.compile("\\d+");

    /** Id of the user nobody on Debian and most other systems; what counts is that it is not 0. */
    private static final int NOBODY = 65_534;

    /**
     * Runs a program as nobody. It keeps one capability, by which it reaches folders that only root can reach, such as
     * a results folder in root's home. The server checks nothing but its user id.
     */
    private static final List<String> AS_NOBODY = List.of(
            "setpriv",
            "--reuid=" + NOBODY,
            "--regid=" + NOBODY,
            "--clear-groups",
            "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override");

    /** @param programs the folder of {@code postgres} and {@code initdb} */
    private record Installed(Path programs, Map<String, String> environment) {}

    @Override
    public String name() {
        return "postgres";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        return start(folder, Ports.free(), told);
    }

    /** Starts a server on a given port with what is in the folder, so that a server can come back. */
    Running start(Path folder, int port, Consumer<String> told) throws InterruptedException {
        Installed installed = find(told);
        boolean isRoot = isRoot();
        if (isRoot && DebianPackages.onPath("setpriv").isEmpty()) {
            throw new BackendUnavailable(
                    "postgres: it refuses to run as root, and there is no setpriv (of util-linux) to run"
                            + " it as nobody: install util-linux, start as another user, or " + HOW);
        }
        Path own = Database.folder(name(), folder);
        Path data = own.resolve("data");
        if (!Files.exists(data.resolve("PG_VERSION"))) {
            initialise(installed, own, data, isRoot);
        }
        told.accept("starting PostgreSQL");
        List<String> command = new ArrayList<>(isRoot ? AS_NOBODY : List.of());
        command.addAll(List.of(
                installed.programs().resolve("postgres").toString(),
                "-D",
                data.toString(),
                "-p",
                Integer.toString(port),
                "-c",
                "listen_addresses=127.0.0.1",
                // a socket's path may not have more than 107 characters, and nobody needs one
                "-c",
                "unix_socket_directories="));
        // QUIT is its immediate end: no checkpoint, but its shared memory is given back
        Warden warden = Warden.start(name(), own, Warden.End.QUIT, command, installed.environment());
        warden.await(() -> roundTrip(port), Database.TO_START);
        return warden.running(port, version(port));
    }

    private void initialise(Installed installed, Path own, Path data, boolean isRoot) throws InterruptedException {
        Path password = own.resolve("password");
        try {
            Files.writeString(password, Database.NAME);
            Files.createDirectories(data);
            if (isRoot) {
                Files.setAttribute(data, "unix:uid", NOBODY);
            }
        } catch (IOException e) {
            throw new BackendUnavailable("postgres: " + own + " cannot be written: " + e.getMessage(), e);
        }
        List<String> command = new ArrayList<>(isRoot ? AS_NOBODY : List.of());
        command.addAll(List.of(
                installed.programs().resolve("initdb").toString(),
                "--pgdata=" + data,
                "--username=" + Database.NAME,
                "--pwfile=" + password,
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                // the data are of no use when the machine goes down during initdb
                "--no-sync"));
        ProcessBuilder program = new ProcessBuilder(command);
        program.environment().putAll(installed.environment());
        Database.prepare(name(), program, own.resolve("initdb.log"));
    }

    private static boolean isRoot() {
        try {
            return Files.getAttribute(Path.of("/proc/self"), "unix:uid") instanceof Integer uid && uid == 0;
        } catch (IOException | UnsupportedOperationException elsewhere) {
            return System.getProperty("user.name", "").equals("root");
        }
    }

    private static Installed find(Consumer<String> told) throws InterruptedException {
        Optional<String> server = DebianPackages.onPath("postgres");
        if (server.isPresent() && DebianPackages.onPath("initdb").isPresent()) {
            return new Installed(folderOf(Path.of(server.get())), Map.of());
        }
        Optional<Path> installed = newest(INSTALLED);
        if (installed.isPresent()) {
            return new Installed(installed.get(), Map.of());
        }
        Path root = new DebianPackages("postgres", "20 MB", HOW).unpackedWithDependencies("postgresql", told);
        return new Installed(
                newest(root.resolve("usr/lib/postgresql"))
                        .orElseThrow(() -> new BackendUnavailable(
                                "postgres: what was unpacked to " + root + " is not whole; remove it and try again")),
                DebianPackages.libraries(root));
    }

    /** The server looks for its libraries beside itself, not beside a link to it. */
    private static Path folderOf(Path program) {
        try {
            return program.toRealPath().resolveSibling("");
        } catch (IOException e) {
            return program.resolveSibling("");
        }
    }

    private static Optional<Path> newest(Path versions) {
        if (!Files.isDirectory(versions)) {
            return Optional.empty();
        }
        try (Stream<Path> folders = Files.list(versions)) {
            return folders.filter(folder ->
                            NUMBER.matcher(folder.getFileName().toString()).matches())
                    .filter(folder -> Files.isExecutable(folder.resolve("bin/postgres")))
                    .max(Comparator.comparingInt(
                            folder -> Integer.parseInt(folder.getFileName().toString())))
                    .map(folder -> folder.resolve("bin"));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private static String url(int port, String database) {
        return "jdbc:postgresql://127.0.0.1:" + port + "/" + database + "?connectTimeout=2&socketTimeout=10";
    }

    /** Makes the database if it is not there, writes to it and reads it back. */
    private static void roundTrip(int port) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url(port, "postgres"), Database.NAME, Database.NAME);
                Statement statement = connection.createStatement();
                ResultSet found =
                        statement.executeQuery("SELECT 1 FROM pg_database WHERE datname = '" + Database.NAME + "'")) {
            if (!found.next()) {
                statement.execute("CREATE DATABASE " + Database.NAME);
            }
        }
        try (Connection connection =
                        DriverManager.getConnection(url(port, Database.NAME), Database.NAME, Database.NAME);
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TEMPORARY TABLE probe (n int)");
            statement.execute("INSERT INTO probe VALUES (42)");
            try (ResultSet row = statement.executeQuery("SELECT n FROM probe")) {
                if (!row.next() || row.getInt(1) != 42) {
                    throw new SQLException("what was written could not be read");
                }
            }
        }
    }

    private static String version(int port) {
        try (Connection connection =
                DriverManager.getConnection(url(port, Database.NAME), Database.NAME, Database.NAME)) {
            // 15.20 (Debian 15.20-0+deb12u1)
            return connection.getMetaData().getDatabaseProductVersion().split(" ")[0];
        } catch (SQLException e) {
            throw new BackendUnavailable("postgres: it answered and then did not: " + e.getMessage(), e);
        }
    }
}
