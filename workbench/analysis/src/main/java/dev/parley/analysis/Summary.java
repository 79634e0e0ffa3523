package dev.parley.analysis;

import dev.parley.model.Load;
import dev.parley.model.Metric;

/**
 * One figure of the report: a technology, in one topology, with one message, under one load.
 *
 * @param subject what it was measured on: {@code client}, {@code system} (all services), {@code service} (a typical one), {@code hop},
 *     {@code generator}; in details a service's or hop's own name
 * @param estimate in {@link Metric#unit()}, median over restarts with a 95 % interval
 * @param restarts how many fresh starts it rests on
 * @param validity {@code valid}, or {@code indicative: …}, {@code cold: …} or {@code void: …} with the reasons
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
        String validity,
        double empty) {

    /** How the validity begins of a figure of services that were still warming up: it is shown, and never compared. */
    public static final String COLD = "cold: ";

    public boolean isCold() {
        return validity.startsWith(COLD);
    }

    /** True where the figure may stand in a ratio, an order or a headline. */
    public boolean counts() {
        return !isVoid() && !isCold();
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
