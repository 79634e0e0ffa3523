package dev.parley.report;

import java.util.List;

/**
 * What one chart shows; drawn by the page's script, and printed as a table and as CSV beside it.
 *
 * @param axis title of the value axis, with its unit
 * @param note one line below the heading: what the figure is, and whether its load was open or closed
 */
record Chart(String id, Kind kind, String heading, String axis, String note, List<Row> rows) {
    /** How it is drawn. */
    enum Kind {
        /** A dot and its interval for each technology. */
        INTERVALS,
        /** A bar for each technology, payload and what surrounds it. */
        STACK,
        /** A bar for each technology and one for the empty service. */
        BARS,
        /** Percentiles, the tail stretched. */
        TAIL
    }

    /** One line of the chart: a message, or for {@link Kind#TAIL} a situation to choose. */
    record Row(String label, List<Point> points) {}

    /**
     * One technology's figure.
     *
     * @param inner of {@code value}, the part that is payload; NaN where that makes no sense
     * @param flag empty, or why the figure is no more than a hint or void
     * @param tail for {@link Kind#TAIL}, percent and milliseconds
     */
    record Point(
            String technology, double value, double low, double high, double inner, String flag, List<double[]> tail) {
        static Point of(String technology, double value, double low, double high, String flag) {
            return new Point(technology, value, low, high, Double.NaN, flag, List.of());
        }
    }
}
