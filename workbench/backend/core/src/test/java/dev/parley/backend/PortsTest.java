package dev.parley.backend;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.process.Ports;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Several processes ask for ports at the same time, and bind them seconds later. */
class PortsTest {
    private static final int PROCESSES = 3;

    /**
     * Ports for each process. There are 12 000 in all, so two processes that drew by chance alone would meet for
     * certain.
     */
    private static final int EACH = 450;

    /** Prints the ports that it is given, and keeps them until its input ends. */
    static final class Asks {
        private Asks() {}

        public static void main(String[] args) throws Exception {
            System.out.println(Arrays.toString(Ports.free(EACH)));
            System.out.flush();
            System.in.read();
        }
    }

    @Test
    void noPortIsGivenToTwoProcesses() throws Exception {
        List<Process> all = new ArrayList<>();
        try {
            for (int i = 0; i < PROCESSES; i++) {
                all.add(new ProcessBuilder(
                                ProcessHandle.current().info().command().orElseThrow(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                Asks.class.getName())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start());
            }
            Set<String> given = new HashSet<>();
            int count = 0;
            for (Process each : all) {
                String line = each.inputReader(StandardCharsets.UTF_8).readLine();
                assertThat(line).isNotNull();
                for (String port : line.substring(1, line.length() - 1).split(", ")) {
                    given.add(port);
                    count++;
                }
            }
            assertThat(count).isEqualTo(PROCESSES * EACH);
            assertThat(given).hasSize(count);
        } finally {
            for (Process each : all) {
                each.getOutputStream().close();
            }
            for (Process each : all) {
                assertThat(each.waitFor(20, TimeUnit.SECONDS)).isTrue();
            }
        }
    }
}
