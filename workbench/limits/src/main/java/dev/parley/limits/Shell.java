package dev.parley.limits;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** The system's own network tools, one short command at a time. */
final class Shell {
    private static final int TO_END_SECONDS = 10;

    private Shell() {}

    /** Runs a command and returns what it printed. */
    static String run(String... command) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            process.getOutputStream().close();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            if (!process.waitFor(TO_END_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
                process.destroyForcibly();
                throw new LimitsException("`" + String.join(" ", command) + "` failed: " + said, null);
            }
            return said;
        } catch (IOException e) {
            throw new LimitsException("`" + String.join(" ", command) + "` could not be run: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LimitsException("`" + String.join(" ", command) + "` was interrupted", e);
        }
    }

    /** Runs a command that may find nothing to do. */
    static void tryTo(String... command) {
        try {
            run(command);
        } catch (LimitsException nothingThere) {
            // taking down what is not there, or no longer
        }
    }

    static Optional<Path> find(String tool) {
        return List.of("/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/bin").stream()
                .map(folder -> Path.of(folder, tool))
                .filter(Files::isExecutable)
                .findFirst();
    }
}
