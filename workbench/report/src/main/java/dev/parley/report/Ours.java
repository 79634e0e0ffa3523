package dev.parley.report;

import dev.parley.studies.Measured;

/**
 * What was measured here of a figure.
 *
 * @param value NaN where there is none
 * @param low the lower end of its 95 % interval
 * @param restarts how many it rests on, {@code 3 of 5} where there were more; empty for a number, and where there is no
 *     figure
 * @param validity as in {@code summary.csv}, or {@code not decided …}; where there is no figure, why
 */
record Ours(double value, double low, double high, String restarts, String validity) {
    private static final String VALID = "valid";

    Ours {
        if (validity.isBlank()) {
            throw new IllegalArgumentException("validity: \"" + validity + "\" (expected: valid, or why not)");
        }
    }

    static Ours missing(String why) {
        return new Ours(Double.NaN, Double.NaN, Double.NaN, "", why);
    }

    /** One that may be believed. */
    static Ours of(Measured figure) {
        return of(figure, VALID);
    }

    static Ours of(Measured figure, String validity) {
        return figure.isMissing()
                ? missing(figure.missing())
                : new Ours(figure.value(), figure.low(), figure.high(), figure.count(), validity);
    }

    boolean isMeasured() {
        return !Double.isNaN(value);
    }

    /** False for a figure that is shown, and from which no verdict follows. */
    boolean decides() {
        return isMeasured() && PaperRun.decides(validity);
    }

    /** What must be known before it is believed; empty as a rule. */
    String remark() {
        if (!validity.equals(VALID)) {
            return validity;
        }
        return restarts.contains(" of ") ? restarts + " restarts" : "";
    }
}
