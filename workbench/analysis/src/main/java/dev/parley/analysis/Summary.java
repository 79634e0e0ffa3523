package dev.parley.analysis;

import dev.parley.model.Load;
import dev.parley.model.Metric;
import java.util.stream.Stream;

/**
 * One figure of the report: a technology, in one topology, with one message, under one load.
 *
 * @param subject what it was measured on: {@link Metric.Subject#key()}; in details a service's, a hop's or a step's own
 *     name
 * @param estimate in {@link Metric#unit()}, median over restarts with a 95 % interval
 * @param restarts how many fresh starts it rests on
 * @param tried how many there were: where they are more, the figure is that of those that survived
 * @param validity {@code valid}, or {@code indicative: …}, {@code too few: …}, {@code cold: …}, {@code unknown: …} or
 *     {@code void: …} with the reasons; {@code cold start} of a trial that is cold by design, which counts
 * @param empty the same figure of the empty service; NaN where there is none
 */
public record Summary(
        String technology,
        String topology,
        String message,
        Load load,
        Metric metric,
        String subject,
        Estimate estimate,
        int restarts,
        int tried,
        String validity,
        double empty) {

    /** How the validity begins of a figure of services that were still warming up: it is shown, and never compared. */
    public static final String COLD = "cold: ";

    /**
     * How the validity begins of a figure of services of which nothing tells whether they were warm: it is shown, and
     * never compared.
     */
    public static final String UNKNOWN = "unknown: ";

    /** How the validity begins of a figure of services that were cold because the study asks how they begin. */
    public static final String COLD_START = "cold start";

    /**
     * How the validity begins of a figure of half of the restarts or fewer: survivors, which are shown, and never
     * compared.
     */
    public static final String TOO_FEW = "too few: ";

    /**
     * What stands in the validity between the samples of a percentile and those that it wants: with fewer it is a
     * matter of a few requests.
     */
    static final String SAMPLES_OF = " samples of ";

    /** True for a percentile of fewer samples in some restart than it wants. */
    public boolean isOfFewSamples() {
        return validity.contains(SAMPLES_OF);
    }

    public boolean isCold() {
        return validity.startsWith(COLD);
    }

    public boolean isUnknown() {
        return validity.startsWith(UNKNOWN);
    }

    public boolean isColdStart() {
        return validity.startsWith(COLD_START);
    }

    public boolean isTooFew() {
        return validity.startsWith(TOO_FEW);
    }

    /** Whether a figure of this validity may stand in a ratio, an order or a verdict. */
    public static boolean counts(String validity) {
        return Stream.of("void", COLD, UNKNOWN, TOO_FEW).noneMatch(validity::startsWith);
    }

    /** True where the figure may stand in a ratio, an order or a headline. */
    public boolean counts() {
        return counts(validity);
    }

    /** {@code 3 of 5}, of a figure that does not rest on every restart there was; empty for any other. */
    public String survivors() {
        return restarts > 0 && restarts < tried ? restarts + " of " + tried : "";
    }

    public boolean isVoid() {
        return validity.startsWith("void");
    }

    public boolean isValid() {
        return validity.equals("valid");
    }

    /** Number of clients of a load that keeps it throughout; empty for any other. */
    public String clients() {
        return load instanceof Load.Closed closed ? Integer.toString(closed.clients()) : "";
    }
}
