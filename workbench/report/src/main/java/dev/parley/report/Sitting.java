package dev.parley.report;

import java.time.Duration;
import java.time.Instant;

/**
 * One stretch of time in which a study was run, begun by one command.
 *
 * @param commit of the workbench, {@code unknown} outside a checkout
 * @param command as typed
 */
public record Sitting(Instant began, Instant ended, String commit, String command) {
    String length() {
        Duration length = Duration.between(began, ended);
        return length.toHours() > 0
                ? length.toHours() + " h " + length.toMinutesPart() + " min"
                : length.toMinutes() + " min " + length.toSecondsPart() + " s";
    }
}
