package dev.parley.analysis;

import java.util.Locale;

/**
 * What a comparison of one technology with another came to.
 *
 * @param moreRestarts for {@link Kind#UNDECIDED}, about how many restarts more would decide it; otherwise 0
 */
public record Verdict(Kind kind, int moreRestarts) {
    /** Nobody makes more. */
    static final int MANY = 1_000;

    /** In the sense of the metric: lower latency is better, lower throughput is worse. */
    public enum Kind {
        BETTER,
        WORSE,
        /** The interval of the ratio lies inside the tie band. */
        EQUIVALENT,
        UNDECIDED,
        /** One side has no valid figure. */
        VOID,
        /** One side was measured only while it was still warming up: there is no ratio. */
        COLD,
        /** Nothing tells whether one side was warm: there is no ratio. */
        UNKNOWN
    }

    @Override
    public String toString() {
        String word = kind.name().toLowerCase(Locale.ROOT);
        String more = moreRestarts == MANY ? MANY + " or more" : moreRestarts + " more";
        return kind == Kind.UNDECIDED ? word + " (" + more + " restarts)" : word;
    }
}
