package dev.parley.backend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BackendTest {
    /** Tests run in their module's folder, three below the repository's root. */
    private static final Path HOME =
            Path.of("").toAbsolutePath().resolve("../../..").normalize();

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    Path folder;

    private Backend.Running start(String name) throws InterruptedException {
        try {
            return new Backends(HOME).named(name).start(folder.resolve(name), line -> {});
        } catch (BackendUnavailable e) {
            Assumptions.assumeTrue(name.equals("kafka"), e.getMessage());
            throw e;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"kafka", "rabbitmq", "postgres", "mysql", "redis"})
    void aServerIsReachableWhileItRunsAndGoneAfterIt(String name) throws Exception {
        List<ProcessHandle> processes;
        int port;
        try (Backend.Running server = start(name)) {
            processes = server.processes();
            port = server.port();
            // one of them may have ended since: a database's servant of a connection that was just closed
            assertThat(processes).isNotEmpty().anyMatch(ProcessHandle::isAlive);
            assertThat(server.version()).matches("\\d+\\.\\d+.*");
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(server.host(), port), 1000);
                assertThat(socket.isConnected()).isTrue();
            }
        }
        await().atMost(Duration.ofSeconds(10)).until(() -> processes.stream().noneMatch(ProcessHandle::isAlive));
    }
}
