package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class ShortCommandTest {
    @Test
    void whatACommandPrintsIsTold() {
        assertThat(ShortCommand.said(List.of("echo", "so"))).isEqualTo("so");
        assertThat(ShortCommand.said(List.of("false"))).isEqualTo("unknown");
        assertThat(ShortCommand.said(List.of("no-such-command"))).isEqualTo("unknown");
    }

    /** The shell waits for a process of its own, which has the output open too. */
    @Test
    @Timeout(60)
    void aCommandThatDoesNotEndIsEndedWithAllThatItStarted(@TempDir Path folder) throws Exception {
        Path pids = folder.resolve("pids");
        assertThat(ShortCommand.said(
                        List.of("sh", "-c", "echo some; sleep 600 & echo $$ $! > " + pids + "; wait"),
                        Duration.ofMillis(500)))
                .isEqualTo("unknown");
        for (String pid : Files.readString(pids).strip().split(" ")) {
            await().until(() -> ProcessHandle.of(Long.parseLong(pid))
                    .filter(ProcessHandle::isAlive)
                    .isEmpty());
        }
    }
}
