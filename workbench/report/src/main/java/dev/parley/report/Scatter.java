package dev.parley.report;

import dev.parley.report.PaperPage.Row;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Theirs across, ours up, both logarithmic: figures in one order rise from left to right, figures in one proportion rise at 45°. */
final class Scatter {
    private static final int SIDE = 340;
    private static final int LEFT = 62;
    private static final int BOTTOM = 44;
    private static final int TOP = 10;
    private static final List<String> COLOURS =
            List.of("rest", "grpc", "rpcx", "openfeign", "graphql", "websocket", "rabbitmq", "kafka");

    private final List<Row> rows;
    private final String unit;

    Scatter(List<Row> rows, String unit) {
        this.rows = rows.stream()
                .filter(r -> r.isBoth() && r.theirs().value() > 0 && r.ours().value() > 0)
                .toList();
        this.unit = unit;
    }

    /** Empty for fewer than three points, which a table shows better. */
    String svg() {
        if (rows.size() < 3) {
            return "";
        }
        double[] x = range(rows.stream().map(r -> r.theirs().value()).toList());
        double[] y = range(rows.stream().map(r -> r.ours().value()).toList());
        StringBuilder svg = new StringBuilder("<svg class=scatter role=img viewBox=\"0 0 " + (LEFT + SIDE + 150) + " "
                + (TOP + SIDE + BOTTOM) + "\"><title>theirs and ours, " + Html.escaped(unit) + "</title>\n");
        for (double tick : ticks(x)) {
            double at = LEFT + SIDE * share(tick, x);
            svg.append(String.format(
                    Locale.ROOT,
                    "<line class=rule x1=%.1f y1=%d x2=%.1f y2=%d /><text x=%.1f y=%d text-anchor=middle>%s</text>",
                    at,
                    TOP,
                    at,
                    TOP + SIDE,
                    at,
                    TOP + SIDE + 16,
                    Figures.brief(tick)));
        }
        for (double tick : ticks(y)) {
            double at = TOP + SIDE * (1 - share(tick, y));
            svg.append(String.format(
                    Locale.ROOT,
                    "<line class=rule x1=%d y1=%.1f x2=%d y2=%.1f /><text x=%d y=%.1f text-anchor=end>%s</text>",
                    LEFT,
                    at,
                    LEFT + SIDE,
                    at,
                    LEFT - 6,
                    at + 4,
                    Figures.brief(tick)));
        }
        List<String> technologies = new ArrayList<>();
        for (Row row : rows) {
            String technology = row.theirs().technology();
            if (!technologies.contains(technology)) {
                technologies.add(technology);
            }
            svg.append(String.format(
                    Locale.ROOT,
                    "<circle cx=%.1f cy=%.1f r=4 style=\"fill:var(%s)\"><title>%s</title></circle>",
                    LEFT + SIDE * share(row.theirs().value(), x),
                    TOP + SIDE * (1 - share(row.ours().value(), y)),
                    colour(technology),
                    Html.escaped(technology + ", " + row.theirs().message() + ", "
                            + row.theirs().load() + ", "
                            + row.theirs().metric() + ": theirs " + row.theirs().written() + " " + unit + ", ours "
                            + Figures.brief(row.ours().value()) + " " + unit)));
        }
        svg.append("<text class=axis x=" + (LEFT + SIDE / 2) + " y=" + (TOP + SIDE + 36)
                + " text-anchor=middle>theirs (" + Html.escaped(unit) + ")</text>");
        svg.append("<text class=axis transform=\"translate(14 " + (TOP + SIDE / 2)
                + ") rotate(-90)\" text-anchor=middle>ours (" + Html.escaped(unit) + ")</text>");
        for (int i = 0; i < technologies.size(); i++) {
            int at = TOP + 14 + 20 * i;
            svg.append("<circle cx=" + (LEFT + SIDE + 20) + " cy=" + (at - 4) + " r=4 style=\"fill:var("
                    + colour(technologies.get(i)) + ")\"/><text x=" + (LEFT + SIDE + 30) + " y=" + at + ">"
                    + Html.escaped(technologies.get(i)) + "</text>");
        }
        return svg.append("</svg>\n").toString();
    }

    /** A technology has the colour that it has in every other report. */
    private static String colour(String technology) {
        for (int i = 0; i < COLOURS.size(); i++) {
            if (technology.startsWith(COLOURS.get(i))) {
                return "--t" + i;
            }
        }
        return "--empty";
    }

    private static double[] range(List<Double> values) {
        double least = values.stream().mapToDouble(v -> v).min().orElse(1);
        double most = values.stream().mapToDouble(v -> v).max().orElse(1);
        return new double[] {Math.log10(least / 1.3), Math.log10(most * 1.3)};
    }

    private static double share(double value, double[] range) {
        return (Math.log10(value) - range[0]) / (range[1] - range[0]);
    }

    /** 1, 2 and 5 of each power of ten; only the powers where that would be too many. */
    private static List<Double> ticks(double[] range) {
        List<Double> ticks = new ArrayList<>();
        boolean isWide = range[1] - range[0] > 2.5;
        for (int power = (int) Math.floor(range[0]); power <= Math.ceil(range[1]); power++) {
            for (double of : isWide ? new double[] {1} : new double[] {1, 2, 5}) {
                double tick = of * Math.pow(10, power);
                if (Math.log10(tick) >= range[0] && Math.log10(tick) <= range[1]) {
                    ticks.add(tick);
                }
            }
        }
        return ticks;
    }
}
