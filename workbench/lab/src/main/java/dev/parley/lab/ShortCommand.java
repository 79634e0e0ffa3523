package dev.parley.lab;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Commands of the system that answer at once. */
final class ShortCommand {
    static final String UNKNOWN = "unknown";

    private ShortCommand() {}

    /** What a command printed; {@link #UNKNOWN} where it cannot be run. */
    static String said(List<String> command) {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            return process.waitFor(5, TimeUnit.SECONDS) && process.exitValue() == 0 ? text : UNKNOWN;
        } catch (IOException notHere) {
            return UNKNOWN;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return UNKNOWN;
        }
    }
}
