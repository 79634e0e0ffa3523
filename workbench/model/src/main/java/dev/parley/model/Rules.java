package dev.parley.model;

/**
 * The rules by which figures are measured and judged, as a number that is kept with every run. Figures of different
 * numbers are not compared, and a run of another number decides nothing here: what counts as warm, as a window or as a
 * verdict meant something else.
 */
public final class Rules {
    /** Raised with every change of what is counted, for how long, in which order, or when it decides. */
    public static final int VERSION = 6;

    /** The name of this number among the facts of a run. */
    public static final String FACT = "rules of measuring";

    private Rules() {}

    /** The number that a run was measured by; {@code none} for one that is older than these numbers. */
    public static String of(Run run) {
        return run.machine().getOrDefault(FACT, "none");
    }

    public static boolean areOf(Run run) {
        return of(run).equals(Integer.toString(VERSION));
    }
}
