package dev.parley.model;

import java.time.Instant;
import java.util.List;

/**
 * How a trial ended. Appended once, never changed; an invalid trial is kept with its reasons.
 *
 * @param voidReasons why its figures are not to be believed, or not to be compared: the latter begin with {@link
 *     #COLD} or {@link #UNKNOWN}; empty when it counts
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
     * How a reason begins for which a trial is cold: its services still compiled, or grew faster, while they were
     * measured. Its figures are true, and are not those of a service that runs for hours.
     */
    public static final String COLD = "cold: ";

    /**
     * How a reason begins where nothing tells whether the services were warm. Such a trial is compared as little as a
     * cold one.
     */
    public static final String UNKNOWN = "unknown: ";

    public TrialRow {
        voidReasons = List.copyOf(voidReasons);
    }

    /** True for a reason of warmth alone: the figures are true, and not shown to be those of warm services. */
    public static boolean isOfWarmth(String reason) {
        return reason.startsWith(COLD) || reason.startsWith(UNKNOWN);
    }

    public boolean isValid() {
        return state == State.FINISHED && voidReasons.isEmpty();
    }
}
