package dev.parley.model;

/**
 * One raw figure of a trial or of a boot.
 *
 * @param trialId the trial that the figure belongs to; for a figure of a boot, the first trial of that boot
 * @param subject what it was measured on: a service ({@code m3}), {@code generator}, {@code empty} for the empty
 *     service, {@code system}
 * @param value in {@link Metric#unit()}
 */
public record FigureRow(int trialId, Metric metric, String subject, double value) {
    /**
     * The service with no technology and no work in it. Figures of size, memory and boot time are shown beside its own.
     */
    public static final String EMPTY = "empty";

    /** The load generator as a process. */
    public static final String GENERATOR = "generator";

    /** All services of a topology together. */
    public static final String SYSTEM = "system";

    /** The broker between the services, all of its processes together. */
    public static final String BROKER = "broker";

    /** The databases of a work, all of them together. */
    public static final String DATABASES = "databases";

    public FigureRow {
        if (!Double.isFinite(value)) {
            throw new BadInput(metric.key() + " of " + subject, value, "a finite number");
        }
    }
}
