package dev.parley.model;

import java.time.Instant;
import java.util.List;

/**
 * How a trial ended. Appended once, never changed; an invalid trial is kept with its reasons.
 *
 * @param voidReasons why its figures are not to be believed; empty when they are
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

    public TrialRow {
        voidReasons = List.copyOf(voidReasons);
    }

    public boolean isValid() {
        return state == State.FINISHED && voidReasons.isEmpty();
    }
}
