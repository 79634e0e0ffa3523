package dev.parley.probe;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MachineMoodTest {
    private static final MachineMood BEFORE =
            MachineMood.parse("cpu 100 0 100 800 0 0 0 0\n", "pswpin 5\npswpout 7\n", 3);

    @Test
    void aQuietMachineHasNoComplaints() {
        MachineMood after = MachineMood.parse("cpu 150 0 150 900 0 0 0 2\n", "pswpin 5\npswpout 7\n", 3);
        assertThat(after.complaintsSince(BEFORE)).isEmpty();
        assertThat(after.busyShareSince(BEFORE)).isBetween(0.5, 0.51);
    }

    @Test
    void stolenTimeAndSwapAreNamed() {
        MachineMood after = MachineMood.parse("cpu 150 0 150 800 0 0 0 10\n", "pswpin 6\npswpout 7\n", 3);
        assertThat(after.complaintsSince(BEFORE))
                .containsExactly("9.1 % of processor time stolen by the host (at most 2 %)", "1 pages swapped");
    }

    @Test
    void throttlingIsNamed() {
        MachineMood after = MachineMood.parse("cpu 150 0 150 900 0 0 0 2\n", "pswpin 5\npswpout 7\n", 5);
        assertThat(after.complaintsSince(BEFORE))
                .containsExactly("the processor was throttled 2 times, by heat or by a quota");
    }

    @Test
    void heatAndQuotasOfAllGroupsAboveAreCounted(@TempDir Path root) {
        Map.of(
                        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "1\n",
                        "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "2\n",
                        "proc/self/cgroup", "5:memory:/x\n2:cpu,cpuacct:/a/b\n0::/c\n",
                        "sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 10\n",
                        "sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_throttled 20\nthrottled_time 5\n",
                        "sys/fs/cgroup/cpu/other/cpu.stat", "nr_throttled 1000\n",
                        "sys/fs/cgroup/c/cpu.stat", "usage_usec 7\nnr_throttled 300\n")
                .forEach((file, text) -> write(root.resolve(file), text));
        assertThat(Throttles.below(root).count()).isEqualTo(333);
        assertThat(Throttles.below(root.resolve("nothing")).count()).isZero();
    }

    private static void write(Path file, String text) {
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
