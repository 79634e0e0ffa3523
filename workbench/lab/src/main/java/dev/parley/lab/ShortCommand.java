package dev.parley.lab;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Commands of the system that answer at once. */
final class ShortCommand {
    static final String UNKNOWN = "unknown";

    private static final Duration MAX_TIME = Duration.ofSeconds(5);

    private ShortCommand() {}

    /** What a command printed; {@link #UNKNOWN} where it cannot be run, or does not answer in time. */
    static String said(List<String> command) {
        return said(command, MAX_TIME);
    }

    /** @param most after which the command is ended, with all that it started */
    static String said(List<String> command, Duration most) {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            // Reading ends when no process has the output open any more.
            CompletableFuture.delayedExecutor(most.toNanos(), TimeUnit.NANOSECONDS)
                    .execute(() -> {
                        if (process.isAlive()) {
                            process.descendants().forEach(ProcessHandle::destroyForcibly);
                            process.destroyForcibly();
                        }
                    });
            String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            return process.waitFor() == 0 ? text : UNKNOWN;
        } catch (IOException notHere) {
            return UNKNOWN;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return UNKNOWN;
        }
    }
}
