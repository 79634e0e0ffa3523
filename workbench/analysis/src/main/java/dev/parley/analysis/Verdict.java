package dev.parley.analysis;

import java.util.Locale;

/**
 * What a comparison of one technology with another came to.
 *
 * @param moreRestarts for {@link Kind#UNDECIDED}, about how many restarts more would decide it; otherwise 0
 * @param why for {@link Kind#UNDECIDED}, what more restarts alone do not mend; empty as a rule
 */
public record Verdict(Kind kind, int moreRestarts, String why) {
    /** Nobody makes more. */
    public static final int MANY = 1_000;

    /** In the sense of the metric: lower latency is better, lower throughput is worse. */
    public enum Kind {
        BETTER,
        WORSE,
        /** Shown to differ by less than the tie band: never merely not shown to differ. */
        EQUIVALENT,
        UNDECIDED,
        /** One side has no valid figure. */
        VOID,
        /** One side was measured only while it was still warming up: there is no ratio. */
        COLD,
        /** Nothing tells whether one side was warm: there is no ratio. */
        UNKNOWN
    }

    public Verdict(Kind kind, int moreRestarts) {
        this(kind, moreRestarts, "");
    }

    static Verdict undecided(String why) {
        return new Verdict(Kind.UNDECIDED, 0, why);
    }

    @Override
    public String toString() {
        String word = kind.name().toLowerCase(Locale.ROOT);
        return kind == Kind.UNDECIDED ? word + " (" + (why.isEmpty() ? more() : why) + ")" : word;
    }

    private String more() {
        return moreRestarts == MANY
                ? MANY + " or more restarts"
                : moreRestarts + (moreRestarts == 1 ? " more restart" : " more restarts");
    }
}
