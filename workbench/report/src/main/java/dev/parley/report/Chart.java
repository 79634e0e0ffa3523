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
        TAIL,
        /** A bar for each technology, cut into the hops that its time went to, in the order of the calls. */
        HOPS,
        /** A line for each technology over a number, such as hops, neighbours or clients. */
        LINES
    }

    /** One line of the chart: a message, for {@link Kind#TAIL} a situation to choose, for {@link Kind#LINES} the title of its other axis. */
    record Row(String label, List<Point> points) {}

    /**
     * One technology's figure.
     *
     * @param inner of {@code value}, the part that is payload; NaN where that makes no sense
     * @param flag empty, or why the figure is no more than a hint or void
     * @param tail for {@link Kind#TAIL} percent and milliseconds, for {@link Kind#LINES} count and value
     * @param parts for {@link Kind#HOPS}, what {@code value} is the sum of
     */
    record Point(
            String technology,
            double value,
            double low,
            double high,
            double inner,
            String flag,
            List<double[]> tail,
            List<Part> parts) {
        static Point of(String technology, double value, double low, double high, String flag) {
            return new Point(technology, value, low, high, Double.NaN, flag, List.of(), List.of());
        }

        static Point line(String technology, String flag, List<double[]> line) {
            return new Point(technology, Double.NaN, Double.NaN, Double.NaN, Double.NaN, flag, line, List.of());
        }
    }

    /** One hop's own share of a time. */
    record Part(String label, double value) {}
}
