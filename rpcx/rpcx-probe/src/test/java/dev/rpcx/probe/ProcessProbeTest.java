package dev.rpcx.probe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

class ProcessProbeTest {
    @Test
    void processorTimeGrowsWithWork() {
        ProcessProbe self = ProcessProbe.of(ProcessHandle.current());
        long before = self.cpuNs().orElseThrow();
        long[] spun = {0};
        await().until(() -> {
            for (int i = 0; i < 50_000_000; i++) {
                spun[0] += i ^ spun[0];
            }
            return self.cpuNs().orElseThrow() > before;
        });
        assertThat(spun[0]).isNotZero();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void compilersTakePartOfTheProcessorTimeOfThisJvm() {
        ProcessProbe self = ProcessProbe.of(ProcessHandle.current());
        long compilers = self.compilersCpuNs().orElseThrow();
        assertThat(compilers).isPositive().isLessThanOrEqualTo(self.cpuNs().orElseThrow());
    }

    /** With a new probe for each reading the sum fell by what the ended thread had taken, and hid what others took. */
    @Test
    void aCompilersThreadThatEndedKeepsItsTime(@TempDir Path folder) throws IOException {
        ProcessProbe probe = new ProcessProbe(ProcessHandle.current(), folder);
        Path first = thread(folder, 11, "C2 CompilerThre", 5_000_000_000L);
        thread(folder, 12, "C1 CompilerThre", 300_000_000L);
        thread(folder, 13, "main", 900_000_000L);
        assertThat(probe.compilersCpuNs()).hasValue(5_300_000_000L);
        for (String file : List.of("comm", "schedstat", "stat")) {
            Files.delete(first.resolve(file));
        }
        Files.delete(first);
        thread(folder, 12, "C1 CompilerThre", 700_000_000L);
        assertThat(probe.compilersCpuNs()).hasValue(5_700_000_000L);
        assertThat(new ProcessProbe(ProcessHandle.current(), folder).compilersCpuNs())
                .as("one that begins to look now")
                .hasValue(700_000_000L);
    }

    private static Path thread(Path folder, int id, String name, long ns) throws IOException {
        Path thread = Files.createDirectories(folder.resolve("task").resolve(Integer.toString(id)));
        Files.writeString(thread.resolve("comm"), name + "\n");
        Files.writeString(thread.resolve("schedstat"), ns + " 1 1\n");
        Files.writeString(thread.resolve("stat"), id + " (" + name + ") S 1 7 7 0 -1 4 5 6 7 8 30 12 0 0 20 0 1");
        return thread;
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void aProcessThatIsGoneHasNoFigures() throws IOException, InterruptedException {
        Process process = new ProcessBuilder("true").start();
        process.waitFor();
        ProcessProbe probe = ProcessProbe.of(process.toHandle());
        assertThat(probe.isAlive()).isFalse();
        assertThat(probe.residentBytes()).isEmpty();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void residentMemoryOfThisJvmIsAboveTenMegabytes() {
        assertThat(ProcessProbe.of(ProcessHandle.current()).residentBytes().orElseThrow())
                .isGreaterThan(10_000_000);
    }

    @Test
    void aCommandNameWithSpacesAndBracketsIsNoField() {
        assertThat(ProcessProbe.cpuTicks("7 (a) b) S 1 7 7 0 -1 4 5 6 7 8 30 12 0 0 20 0 1"))
                .isEqualTo(42);
    }
}
