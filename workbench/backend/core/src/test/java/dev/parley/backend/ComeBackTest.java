package dev.parley.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.parley.process.Ports;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Servers that end in the middle of their work and come back on the same port with the same folder. */
class ComeBackTest {
    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    Path folder;

    private interface Start {
        Backend.Running start() throws InterruptedException;
    }

    private static Backend.Running had(Start start) throws InterruptedException {
        try {
            return start.start();
        } catch (BackendUnavailable e) {
            Assumptions.abort(e.getMessage());
            throw e;
        }
    }

    private static void keepsWhatWasCommitted(String url, Start start) throws Exception {
        Backend.Running server = had(start);
        try (Connection connection = DriverManager.getConnection(url, "parley", "parley");
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE kept (n int)");
            statement.execute("INSERT INTO kept VALUES (7)");
            connection.setAutoCommit(false);
            statement.execute("INSERT INTO kept VALUES (8)");
            server.processes().forEach(ProcessHandle::destroyForcibly);
        } catch (SQLException ofClosing) {
            // the connection of a server that is gone
        } finally {
            server.close();
        }
        try (Backend.Running _ = start.start();
                Connection connection = DriverManager.getConnection(url, "parley", "parley");
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT sum(n) FROM kept")) {
            assertThat(rows.next()).isTrue();
            assertThat(rows.getInt(1)).isEqualTo(7);
        }
    }

    @Test
    void postgresKeepsWhatWasCommitted() throws Exception {
        int port = Ports.free();
        keepsWhatWasCommitted(
                "jdbc:postgresql://127.0.0.1:" + port + "/parley",
                () -> new PostgresBackend().start(folder.resolve("p"), port, line -> {}));
    }

    @Test
    void mysqlKeepsWhatWasCommitted() throws Exception {
        int port = Ports.free();
        keepsWhatWasCommitted(
                "jdbc:mariadb://127.0.0.1:" + port + "/parley",
                () -> new MySqlBackend().start(folder.resolve("m"), port, line -> {}));
    }

    @Test
    void aWardenWhoseShellIsKilledEndsItsServerAllTheSame() throws Exception {
        Warden warden = Warden.start("sleeper", folder, Warden.End.TERM, List.of("sleep", "600"), Map.of());
        List<ProcessHandle> processes;
        try {
            await().until(() -> warden.running(1, "1").processes().size() >= 2);
            processes = warden.running(1, "1").processes();
            warden.child().kill();
            await().until(() -> !warden.child().isAlive());
        } finally {
            warden.child().close();
        }
        await().atMost(10, TimeUnit.SECONDS).until(() -> processes.stream().noneMatch(ProcessHandle::isAlive));
    }

    @Test
    void aServerThatEndsByItselfIsToldWithItsExitCode() throws Exception {
        Warden warden = Warden.start(
                "failing", folder, Warden.End.TERM, List.of("sh", "-c", "echo no such data >&2; exit 3"), Map.of());
        org.assertj.core.api.Assertions.assertThatThrownBy(() -> warden.await(
                        () -> {
                            throw new IllegalStateException("not yet");
                        },
                        Duration.ofSeconds(20)))
                .hasMessageContaining("exit code 3")
                .hasMessageContaining("no such data");
    }
}
