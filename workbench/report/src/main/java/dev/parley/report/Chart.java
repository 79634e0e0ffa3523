package dev.parley.report;

import java.util.List;
import java.util.stream.DoubleStream;

/**
 * What one chart shows; drawn by the page's script, and printed as a table and as CSV beside it.
 *
 * @param axis title of the value axis, with its unit
 * @param across title of the other axis, for {@link Kind#LINES} and {@link Kind#CURVE}; empty where it has none
 * @param note one line below the heading: what the figure is, and whether its load was open or closed
 * @param isWide true where an axis from 0 would hide the small values beside the large ones: then marks and lines stand
 *     on a logarithmic axis, and bars, which have no honest length on one, show shares
 */
record Chart(
        String id, Kind kind, String heading, String axis, String across, String note, List<Row> rows, boolean isWide) {
    /** Values further apart than this do not share an axis from 0. */
    private static final double WIDE = 30;

    /** How it is drawn. */
    enum Kind {
        /** A mark and its interval for each technology. */
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
        LINES,
        /** A line for each condition: a mark with its interval for each technology, and a hollow one for the paper. */
        BESIDE,
        /** A mark for each pair of figures, the paper's across. */
        PAIRS,
        /** Lines over a number, each point with its interval and, hollow, the paper's. */
        CURVE;

        /** True where technologies are told by their marks alone, since no name stands beside them. */
        boolean needsLegend() {
            return switch (this) {
                case INTERVALS, STACK, BARS, HOPS -> false;
                case TAIL, LINES, BESIDE, PAIRS, CURVE -> true;
            };
        }

        /** True where the reader chooses one of the rows. */
        boolean isOfOneRow() {
            return this == TAIL || this == CURVE;
        }
    }

    /**
     * One line of the chart: a message or a condition; for {@link Kind#TAIL} and {@link Kind#CURVE} what the reader
     * chooses; without a label where there is only one.
     */
    record Row(String label, List<Point> points) {}

    /**
     * One technology's figure, or one of several under one name.
     *
     * @param inner of {@code value}, the part that is payload; NaN where that makes no sense
     * @param flag empty, or why the figure is no more than a hint or void
     * @param tail for {@link Kind#TAIL} percent and milliseconds, for {@link Kind#LINES} count and value
     * @param parts for {@link Kind#HOPS}, what {@code value} is the sum of
     * @param at for {@link Kind#CURVE}, its place across; NaN elsewhere
     * @param theirs the paper's figure; NaN where there is none
     */
    record Point(
            String technology,
            double value,
            double low,
            double high,
            double inner,
            String flag,
            List<double[]> tail,
            List<Part> parts,
            double at,
            double theirs) {
        /** One that stands beside no figure of a paper. */
        Point(
                String technology,
                double value,
                double low,
                double high,
                double inner,
                String flag,
                List<double[]> tail,
                List<Part> parts) {
            this(technology, value, low, high, inner, flag, tail, parts, Double.NaN, Double.NaN);
        }

        static Point of(String technology, double value, double low, double high, String flag) {
            return new Point(technology, value, low, high, Double.NaN, flag, List.of(), List.of());
        }

        static Point line(String technology, String flag, List<double[]> line) {
            return new Point(technology, Double.NaN, Double.NaN, Double.NaN, Double.NaN, flag, line, List.of());
        }

        /** Beside the paper's figure. */
        static Point beside(String technology, double at, Ours ours, double theirs, String flag) {
            return new Point(
                    technology,
                    ours.value(),
                    ours.low(),
                    ours.high(),
                    Double.NaN,
                    flag,
                    List.of(),
                    List.of(),
                    at,
                    theirs);
        }

        /** True where there is something to draw. */
        private boolean isDrawn() {
            return values().findAny().isPresent();
        }

        /** All that is drawn of it along the value axis. */
        private DoubleStream values() {
            return DoubleStream.concat(
                            DoubleStream.of(value, low, high, theirs),
                            tail.stream().mapToDouble(at -> at[1]))
                    .filter(Double::isFinite);
        }
    }

    /** One hop's own share of a time. */
    record Part(String label, double value) {}

    /** A chart by itself: {@link #alike} says how wide the charts of a section are. */
    Chart(String id, Kind kind, String heading, String axis, String across, String note, List<Row> rows) {
        this(id, kind, heading, axis, across, note, rows, false);
    }

    /** One without another axis. */
    Chart(String id, Kind kind, String heading, String axis, String note, List<Row> rows) {
        this(id, kind, heading, axis, "", note, rows);
    }

    /**
     * The same charts, of which those of one kind have one kind of axis: two that stand side by side are compared by
     * eye.
     */
    static List<Chart> alike(List<Chart> charts) {
        return charts.stream().map(chart -> chart.beside(charts)).toList();
    }

    /** A single bar has neither an honest length on a logarithmic axis nor a share of anything. */
    private Chart beside(List<Chart> charts) {
        List<Chart> like = charts.stream().filter(other -> other.kind == kind).toList();
        boolean wide = kind != Kind.BARS
                && like.stream().anyMatch(Chart::isSpread)
                && like.stream().allMatch(Chart::isPositive);
        return new Chart(id, kind, heading, axis, across, note, rows, wide);
    }

    /** The least value above 0 counts: what is 0 is drawn at 0. */
    private boolean isSpread() {
        return values().max().orElse(0)
                > WIDE * values().filter(value -> value > 0).min().orElse(Double.POSITIVE_INFINITY);
    }

    private boolean isPositive() {
        return values().allMatch(value -> value > 0);
    }

    private DoubleStream values() {
        return rows.stream().flatMap(row -> row.points().stream()).flatMapToDouble(Point::values);
    }

    boolean isMeasured() {
        return rows.stream().flatMap(row -> row.points().stream()).anyMatch(Point::isDrawn);
    }

    /** The id of what a text names. One sign tells calls at once from calls one after the other. */
    static String id(String text) {
        return text.replace("&", " and ").replaceAll("[^A-Za-z0-9]+", "-");
    }

    /** What stands in brackets at the end of the axis' title. */
    String unit() {
        return axis.substring(axis.lastIndexOf('(') + 1, axis.lastIndexOf(')'));
    }

    /** What the axis shows as it is drawn. */
    String drawnAxis() {
        if (!isWide) {
            return axis;
        }
        return switch (kind) {
            case INTERVALS, TAIL, LINES, BESIDE, PAIRS, CURVE -> axis + ", logarithmic";
            case STACK -> "Share of the message's largest (%)";
            case HOPS -> "Share of its own response time (%)";
            case BARS -> axis;
        };
    }
}
