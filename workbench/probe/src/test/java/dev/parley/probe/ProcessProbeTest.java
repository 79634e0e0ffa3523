package dev.parley.probe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

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
