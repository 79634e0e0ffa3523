package dev.parley.model;

import java.time.Instant;
import java.util.List;

/**
 * How a trial ended. Appended once, never changed; an invalid trial is kept with its reasons.
 *
 * @param voidReasons why its figures are not to be believed, or not to be compared: those begin with {@link #COLD}; empty when it counts
 * @param message what happened, for a trial that failed; empty otherwise
 */
public record TrialRow(
        TrialSpec spec, State state, Instant startedAt, Instant endedAt, List<String> voidReasons, String message) {
    /** Whether it ran to its end. */
    public enum State {
        FINISHED,
        FAILED,
        INTERRUPTED
    }

    /**
     * How a reason begins that makes a trial cold: its services still compiled, or grew faster, while they were measured. Its figures are
     * true, and are not those of a service that runs for hours.
     */
    public static final String COLD = "cold: ";

    public TrialRow {
        voidReasons = List.copyOf(voidReasons);
    }

    public boolean isValid() {
        return state == State.FINISHED && voidReasons.isEmpty();
    }
}
